"""The cost of waiting readers: 10 and 1,000 readers, each with one long poll on its own queue, in turn.

Each message goes to the queue of the next reader, at a fixed rate. Store and services are the same for both numbers of
readers, and the pipeline runs without Spark. A server that does nothing but wait and answer shows how much of the
growth is the machine's and uvicorn's: memory of a reader was last used when its message before came.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np
import orjson
import psutil
from numpy.typing import NDArray

from benchmarks.bare_server import bare_server
from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.connection import Connection
from benchmarks.open_loop import LEAD_S, send_at_rate
from benchmarks.processes import cpu_s
from benchmarks.producers import require_stored
from benchmarks.report import Result, Row
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import Producer, Query, SendResult
from tidemark.local.local_stack import QUERY, LocalStack
from tidemark.settings.engine import Engine
from tidemark.store.open_files_limit import allow_many_files

COUNTS = (10, 1000)
RATE = 200.0
_DURATION_S = 10.0  # of a round's idle part, and of its messages
_ROUNDS = 3
_TOPIC_QUEUES = 100
_WARM_UP = 200  # messages of a round that do not count: the producer's first routes
_WAIT_MS = 30_000
_BARE_ANSWER_BYTES = 700  # about those of one message
_SETTLE_S = 1.0  # from the requests to the idle part
_TIMEOUT_S = 60.0
_RATIO_TARGET = "≤ 1.2"
_FIGURES = {
    "p50": ("acknowledged append to answer, p50", "ms"),
    "p99": ("acknowledged append to answer, p99", "ms"),
    "cpu": ("processor time of the query service a message", "ms"),
    "idle": ("processor time of the query service without messages", "ms/s"),
}


class Client(NamedTuple):
    """The result of the sender or of the readers of a round.

    times       of acknowledgements or answers in ns of the machine's monotonic clock, by the number of the message
    cpu_s       of the query service, from the first message to the last answer; readers only
    idle_cpu_s  of the query service in each second without messages; readers only
    """

    times: NDArray[np.int64]
    cpu_s: float = 0.0
    idle_cpu_s: float = 0.0


def _measure(folder: Path, scale: float) -> Result:
    seconds = max(3.0, _DURATION_S * scale)
    settings = {"TIDEMARK_PIPELINE": Engine.PLAIN.value}
    latencies: dict[int, list[NDArray[np.float64]]] = {count: [] for count in COUNTS}
    reads: dict[int, list[Client]] = {count: [] for count in COUNTS}
    with passing_store(folder / "waiting") as data, running(data, flush_mode="async", settings=settings) as stack:
        fill(stack, COUNTS[-1])
        for _ in range(_ROUNDS):
            for count in COUNTS:
                sent, read = measure_round(stack, count, _WARM_UP + int(RATE * seconds), idle_s=seconds)
                latencies[count].append((read.times - sent.times)[_WARM_UP:] / 1e6)
                reads[count].append(read)
    figures = {count: _figures(np.concatenate(latencies[count]), reads[count]) for count in COUNTS}
    return Result([*_rows(figures), *_bare_rows(figures, _measure_bare(seconds))], [])


def _measure_bare(seconds: float) -> dict[int, dict[str, float]]:
    """Return the figures by the number of readers; latencies are those from the sending of the wake-up."""
    messages = _WARM_UP + int(RATE * seconds)
    latencies: dict[int, list[NDArray[np.float64]]] = {count: [] for count in COUNTS}
    reads: dict[int, list[Client]] = {count: [] for count in COUNTS}
    with bare_server("benchmarks.bare_waiting", str(_BARE_ANSWER_BYTES)) as server:
        for _ in range(_ROUNDS):
            for count in COUNTS:
                wake = partial(_wake, server.address, count, messages)
                read = partial(_read, server.address, server.pid, count, messages, seconds, reader=_BareReader)
                sent, answers = run_clients([wake, read])
                latencies[count].append((answers.times - sent.times)[_WARM_UP:] / 1e6)
                reads[count].append(answers)
    return {count: _figures(np.concatenate(latencies[count]), reads[count]) for count in COUNTS}


def _wake(address: str, readers: int, messages: int, start: Start) -> Client:
    """Wake one reader after the other at the rate of the messages; return the times of the requests."""
    times = np.zeros(messages, np.int64)
    with Connection(address) as connection:
        start()
        begin = time.perf_counter_ns() + int(LEAD_S * 1e9)
        for number in range(messages):
            due_ns = begin + int(number / RATE * 1e9)
            time.sleep(max(0, due_ns - time.perf_counter_ns()) / 1e9)
            times[number] = time.perf_counter_ns()
            connection.get(f"/{number % readers}/{number}")
    return Client(times)


def _place(number: int) -> tuple[str, int]:
    """Return topic and queue id of queue *number*."""
    topic, queue_id = divmod(number, _TOPIC_QUEUES)
    return f"waiting-{topic}", queue_id


def fill(stack: LocalStack, queues: int) -> None:
    """Make *queues*, each with one visible message."""
    with Producer(stack.writer_address) as producer:
        for number in range(0, queues, _TOPIC_QUEUES):
            producer.topics.create(_place(number)[0], queues=_TOPIC_QUEUES)
        sent = []
        for number in range(queues):
            topic, queue_id = _place(number)
            sent.append(producer.send_async(topic, b"0", queue_id=queue_id))
        for future in sent:
            require_stored(future.result())
    with Query(stack.query_url) as query:
        topic, queue_id = _place(queues - 1)
        while not query.pull(topic, queue_id, 0, wait_ms=1000)["messages"]:
            stack.check()


def measure_round(stack: LocalStack, readers: int, messages: int, *, idle_s: float) -> tuple[Client, Client]:
    """Return the results of the sender and of the readers, which first wait for *idle_s* without messages."""
    address, pid = urlsplit(stack.query_url).netloc, stack.services[QUERY].pid
    send = partial(_send, stack.writer_address, readers, messages)
    read = partial(_read, address, pid, readers, messages, idle_s)
    sender, reader = run_clients([send, read])
    return sender, reader


def _send(address: str, readers: int, messages: int, start: Start) -> Client:
    """Send to one queue after the other."""

    def send(number: int, _: int) -> Future[SendResult]:
        topic, queue_id = _place(number % readers)
        return producer.send_async(topic, b"%d" % number, queue_id=queue_id)

    with Producer(address) as producer:
        producer.log_info()  # connects
        start()
        return Client(send_at_rate(producer, messages, RATE, send).acknowledged)


class _BareReader:
    """A client that waits for wake-ups."""

    def __init__(self, connection: Connection, number: int) -> None:
        self.connection = connection
        self._number = number

    def ask(self) -> None:
        """Send the next request, which waits to be woken."""
        self.connection.ask(f"/{self._number}")

    def answer(self) -> list[int]:
        """Return the number of the wake-up."""
        return [int(bytes(self.connection.answer()))]


class _Reader:
    """A client that waits for the messages of one queue, from its current end on."""

    def __init__(self, connection: Connection, number: int) -> None:
        topic, queue_id = _place(number)
        self.connection = connection
        self._queue = f"/v1/topics/{topic}/queues/{queue_id}"
        self._next_offset = int(orjson.loads(connection.get(self._queue))["max_offset"])

    def ask(self) -> None:
        """Send the next request, which waits for a message."""
        self.connection.ask(f"{self._queue}/messages?offset={self._next_offset}&wait_ms={_WAIT_MS}&body_encoding=utf8")

    def answer(self) -> list[int]:
        """Return the numbers of the messages of the answer."""
        page = orjson.loads(self.connection.answer())
        self._next_offset = page["next_offset"]
        return [int(message["body"]) for message in page["messages"]]


def _read(
    address: str,
    pid: int,
    readers: int,
    messages: int,
    idle_s: float,
    start: Start,
    *,
    reader: Callable[[Connection, int], _Reader | _BareReader] = _Reader,
) -> Client:
    """Wait with all readers, first without messages, then for *messages* messages."""
    allow_many_files()
    service = psutil.Process(pid)
    with contextlib.ExitStack() as stack:
        waiting: dict[int, _Reader | _BareReader] = {}
        poll = stack.enter_context(select.epoll())
        for number in range(readers):
            one = reader(stack.enter_context(Connection(address)), number)
            waiting[one.connection.fileno()] = one
            poll.register(one.connection.fileno(), select.EPOLLIN)
            one.ask()
        time.sleep(_SETTLE_S)
        before_idle = cpu_s(service)
        time.sleep(idle_s)
        before = cpu_s(service)
        start()
        answered = _answered(poll, waiting, messages)
        return Client(answered, cpu_s(service) - before, (before - before_idle) / idle_s)


def _answered(poll: select.epoll, waiting: Mapping[int, _Reader | _BareReader], messages: int) -> NDArray[np.int64]:
    """Return the time of the answer with each message in ns. Raises RuntimeError if messages do not arrive."""
    answered = np.zeros(messages, np.int64)
    missing = messages
    while missing:
        ready = poll.poll(_TIMEOUT_S)
        if not ready:
            raise RuntimeError(f"{missing} of {messages} messages are missing after {_TIMEOUT_S:.0f} s")
        for descriptor, _ in ready:
            reader = waiting[descriptor]
            numbers = reader.answer()
            answered[numbers] = time.perf_counter_ns()
            missing -= len(numbers)
            reader.ask()
    return answered


def _figures(latencies_ms: NDArray[np.float64], reads: list[Client]) -> dict[str, float]:
    return {
        "p50": float(np.percentile(latencies_ms, 50)),
        "p99": float(np.percentile(latencies_ms, 99)),
        "cpu": 1000 * sum(read.cpu_s for read in reads) / sum(len(read.times) for read in reads),
        "idle": 1000 * sum(read.idle_cpu_s for read in reads) / len(reads),
    }


def _rows(figures: dict[int, dict[str, float]]) -> list[Row]:
    rows = []
    for count, values in figures.items():
        note = f"each with a long poll on its own queue; {RATE:.0f} messages a second, each to another of these queues"
        rows += [
            Row(f"waiting_{count}_{figure}", f"{count:,} readers: {name}", values[figure], unit, "", note)
            for figure, (name, unit) in _FIGURES.items()
        ]
    few, many = figures.values()
    note = "cost with 1,000 readers relative to 10"
    rows += [
        Row(f"waiting_ratio_{figure}", f"readers, ratio: {name}", many[figure] / few[figure], "×", _RATIO_TARGET, note)
        for figure, (name, _) in _FIGURES.items()
    ]
    return rows


def _bare_rows(ours: dict[int, dict[str, float]], bare: dict[int, dict[str, float]]) -> list[Row]:
    note = "uvicorn alone: a reader is woken by another client's request"
    names = {**_FIGURES, "p50": ("wake-up to answer, p50", "ms"), "p99": ("wake-up to answer, p99", "ms")}
    rows = [
        Row(f"waiting_bare_{count}_{figure}", f"{count:,} readers alone: {name}", values[figure], unit, "", note)
        for count, values in bare.items()
        for figure, (name, unit) in names.items()
    ]
    few, many = COUNTS
    growth = {figure: bare[many][figure] / bare[few][figure] if bare[few][figure] else 1.0 for figure in names}
    rows += [
        Row(f"waiting_bare_ratio_{figure}", f"readers alone, ratio: {name}", growth[figure], "×", "", note)
        for figure, (name, _) in names.items()
    ]
    note = "growth of the service's cost relative to uvicorn's alone"
    return rows + [
        Row(
            f"waiting_over_bare_{figure}",
            f"readers, over alone: {name}",
            ours[many][figure] / ours[few][figure] / growth[figure],
            "×",
            "≤ 1.3",
            note,
        )
        for figure, (name, _) in _FIGURES.items()
    ]


_KEYS = (
    *(f"waiting_{of}_{figure}" for of in (*COUNTS, "ratio") for figure in _FIGURES),
    *(
        f"waiting_{of}_{figure}"
        for of in (*(f"bare_{n}" for n in COUNTS), "bare_ratio", "over_bare")
        for figure in _FIGURES
    ),
)
BENCHMARKS = (Benchmark("waiting", _KEYS, _measure, "async"),)
