"""Start to serving: the time from the start of all three services, as by `tidemark serve`, until a first pull.

It is measured after a clean stop, and after kill -9 of all services during appends. The files are in memory as far as
they fit, because the restart of the program is measured, not that of the machine.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.batches import plain_batch
from benchmarks.benchmark import Benchmark
from benchmarks.clock import clock
from benchmarks.indexing import index_once
from benchmarks.producers import Load
from benchmarks.report import Line, Plot, PlotKind, Result, Row
from benchmarks.stack import environment
from benchmarks.stores import LARGE_BATCH, append_log, batches_for, passing_store
from tidemark.client import Producer, Query
from tidemark.errors import StoreError
from tidemark.local.local_stack import LocalStack

STORE_BYTES = 10e9
_SIZES = (0.1, 0.3, 1.0)  # sizes of the store; the rows are from the last one
_BODY_BYTES = 1024
_TOPIC, _LIVE_TOPIC = "bench", "live"
_TIMEOUT_S = 300.0
_POLL_S = 0.01
_LOAD_S = 1.0  # duration of appends before a kill


class Started(NamedTuple):
    """Seconds from exec to the first answered pull, the first acknowledged append, and the pull of its message."""

    pull_s: float
    append_s: float
    visible_s: float


def _measure(folder: Path, scale: float) -> Result:
    points: list[tuple[float, Started, Started]] = []
    with passing_store(folder / "start") as data:
        for size, before in zip(_SIZES, (0.0, *_SIZES), strict=False):
            batches = batches_for(STORE_BYTES * scale * (size - before), messages=LARGE_BATCH, body_bytes=_BODY_BYTES)
            append_log(data, Load(_TOPIC, LARGE_BATCH, _BODY_BYTES, batches, unique_keys=True))
            gigabytes = index_once(data).end_offset / 1e9
            clean = start_to_serving(data, _TOPIC, then_kill=True)
            killed = start_to_serving(data, _TOPIC)
            points.append((gigabytes, clean, killed))
    return Result(_rows(*points[-1]), [_growth(points)])


def start_to_serving(
    data: Path, topic: str, *, then_kill: bool = False, settings: Mapping[str, str] | None = None
) -> Started:
    """Start the stopped store at *data*, and afterwards stop it, or kill it under load.

    Queue 0 of *topic* must have messages.
    """
    stack = LocalStack(data, environment=environment("sync", settings))
    with ThreadPoolExecutor(3) as pool, clock():
        begin = time.perf_counter()
        starting = pool.submit(stack.start)
        pulled = pool.submit(_first_pull, stack, topic)
        appended = pool.submit(_first_append, stack)
        try:
            starting.result()
            pull_at, (append_at, visible_at) = pulled.result(), appended.result()
        except BaseException:
            stack.stopping.set()  # ends the start and the clients that wait for it
            stack.stop()
            raise
    if then_kill:
        _kill_under_load(stack)
    elif failed := {name: status for name, status in stack.stop().items() if status}:
        raise RuntimeError(f"services stopped with exit statuses {failed}: see {stack.logs}")
    return Started(pull_at - begin, append_at - begin, visible_at - begin)


def _first_pull(stack: LocalStack, topic: str) -> float:
    with Query(stack.query_url) as query:
        _until(lambda: query.pull(topic, 0, "earliest", max_messages=32)["messages"], stack.stopping)
        return time.perf_counter()


def _first_append(stack: LocalStack) -> tuple[float, float]:
    """Return the times at which the append was acknowledged and its message was pulled."""
    _until(lambda: _listens(stack.writer_port), stack.stopping)
    with Producer(stack.writer_address, timeout_s=_TIMEOUT_S) as producer:
        sent = producer.send(_LIVE_TOPIC, b"first", queue_id=0)
    appended = time.perf_counter()
    with Query(stack.query_url) as query:
        _until(lambda: query.pull(_LIVE_TOPIC, 0, sent.queue_offset, wait_ms=1000)["messages"], stack.stopping)
    return appended, time.perf_counter()


def _until(ask: Callable[[], Any], stopping: threading.Event) -> None:
    """Call *ask* until it returns a true value. Raises RuntimeError after five minutes, or once *stopping* is set."""
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            if ask():
                return
            problem = "the answer was empty"
        except (StoreError, OSError) as error:  # the service is not up, or does not know the topic yet
            problem = str(error)
        if time.monotonic() > deadline:
            raise RuntimeError(f"not serving after {_TIMEOUT_S:.0f} s: {problem}")
        if stopping.wait(_POLL_S):
            raise RuntimeError(f"stopped before it served: {problem}")


def _listens(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=1):
        return True


def _kill_under_load(stack: LocalStack) -> None:
    """Kill all services with SIGKILL while batches are in flight, so that the next start must recover."""
    stopping = threading.Event()
    packed = plain_batch(100, _BODY_BYTES)

    def load() -> None:
        with Producer(stack.writer_address, timeout_s=1) as producer:
            while not stopping.is_set():
                producer.send_packed_async(_LIVE_TOPIC, packed, queue_id=0).add_done_callback(
                    lambda done: done.exception()
                )

    thread = threading.Thread(target=load)
    thread.start()
    time.sleep(_LOAD_S)
    for service in stack.services.values():
        service.kill()
    stopping.set()
    thread.join()


def _rows(gigabytes: float, clean: Started, killed: Started) -> list[Row]:
    rows = []
    ways = (("clean", "a clean stop", clean), ("killed", "kill -9 under load", killed))
    for way, text, started in ways:
        note = f"store of {gigabytes:.1f} GB, services as `tidemark serve` starts them"
        rows.append(Row(f"start_{way}_s", f"start after {text}: first pull", started.pull_s, "s", "≤ RocketMQ", note))
    for way, text, started in ways:
        rows += [
            Row(
                f"start_{way}_append_s",
                f"start after {text}: first append",
                started.append_s,
                "s",
                "",
                "the same start",
            ),
            Row(
                f"start_{way}_visible_s",
                f"start after {text}: that append pulled",
                started.visible_s,
                "s",
                "",
                "Spark up",
            ),
        ]
    return rows


def _growth(points: list[tuple[float, Started, Started]]) -> Plot:
    sizes = [gigabytes for gigabytes, *_ in points]
    lines = {
        "first pull, after a clean stop": Line(sizes, [clean.pull_s for _, clean, _ in points]),
        "first pull, after kill -9": Line(sizes, [killed.pull_s for *_, killed in points]),
        "first append pulled, after a clean stop": Line(sizes, [clean.visible_s for _, clean, _ in points]),
        "first append pulled, after kill -9": Line(sizes, [killed.visible_s for *_, killed in points]),
    }
    return Plot("start: growth with the store", "GB of log", "s", PlotKind.GROWTH, lines)


_KEYS = (
    "start_clean_s",
    "start_killed_s",
    "start_clean_append_s",
    "start_clean_visible_s",
    "start_killed_append_s",
    "start_killed_visible_s",
)
BENCHMARKS = (Benchmark("start", _KEYS, _measure, "sync"),)
