"""The cost of many queues: equal messages on few and on 10,000 queues of a store are appended, built and pulled.

Every batch goes to one queue, the next batch to the next queue.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.bare_files import make_files
from benchmarks.bare_server import bare_server
from benchmarks.batches import plain_batch
from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.indexing import index_once
from benchmarks.producers import PRODUCERS, TIMEOUT_S, require_stored
from benchmarks.pulls import ANSWER_BYTES, ANSWER_MESSAGES, Form, Place, Puller
from benchmarks.report import Line, Plot, PlotKind, Result, Row
from benchmarks.rows.start import start_to_serving
from benchmarks.stack import running
from benchmarks.stores import RECORD_OVERHEAD, passing_store
from tidemark.client import Producer, Query
from tidemark.client.rest.connections import Connections
from tidemark.local.local_stack import QUERY, WRITER

COUNTS = (10, 1000, 10_000)
_SHOWN = (10, 10_000)
MESSAGES, BODY_BYTES = 100, 100  # of a batch
BATCHES = 20_000
_TOPIC_QUEUES = 100  # maximum number of queues of a topic
_FIGURES = {
    "append": "msg/s",
    "build": "msg/s",
    "first_pull": "msg/s",
    "pull": "msg/s",
    "pull_each": "msg/s",
    "start_s": "s",
}
_NAMES = {
    "start_s": "start to the first pull",
    "first_pull": "pull, hundreds of queues a request, each for the first time",
    "pull": "pull, hundreds of queues a request",
    "pull_each": "pull, a request a queue",
}
_RATIO_TARGET = "≤ 1.5"
_FILES = f"queues_{COUNTS[-1]}_files"
_CALLS = {figure: f"queues_{COUNTS[-1]}_{figure}_calls" for figure in ("first_pull", "pull")}
_OVER_CALLS = {figure: f"queues_{COUNTS[-1]}_{figure}_over_calls" for figure in _CALLS}


class Cost(NamedTuple):
    """The figures for a number of queues: messages per second, and seconds to the first pull after a clean stop.

    first_pull_calls, pull_calls  like first_pull and pull, by a server that makes only their system calls
    """

    append: float
    build: float
    first_pull: float  # includes the opening of each queue
    pull: float
    pull_each: float
    start_s: float
    first_pull_calls: float
    pull_calls: float


def _measure(folder: Path, scale: float) -> Result:
    costs = {count: _cost(folder / f"queues-{count}", count, max(*COUNTS, int(BATCHES * scale))) for count in COUNTS}
    rows = []
    for count in _SHOWN:
        note = f"{count:,} queues, batches of {MESSAGES} × {BODY_BYTES} B, each to another queue"
        rows += [
            Row(
                f"queues_{count}_{figure}",
                f"{count:,} queues: {_name(figure)}",
                getattr(costs[count], figure),
                unit,
                "",
                note,
            )
            for figure, unit in _FIGURES.items()
        ]
    rows.append(_files_row(folder / "bare-files", max(*COUNTS, int(BATCHES * scale)) * MESSAGES))
    rows += _calls_rows(costs[COUNTS[-1]])
    few, many = (costs[count] for count in _SHOWN)
    for figure in _FIGURES:
        one, other = getattr(few, figure), getattr(many, figure)
        ratio = other / one if figure == "start_s" else one / other
        note = "cost of 10,000 queues relative to 10"
        rows.append(Row(f"queues_ratio_{figure}", f"queues, ratio: {_name(figure)}", ratio, "×", _RATIO_TARGET, note))
    return Result(rows, [_rates(costs), _starts(costs)])


def _files_row(folder: Path, messages: int) -> Row:
    """Return the rate, in messages per second, that a first build would have if it only created the files."""
    count = COUNTS[-1]
    seconds = make_files(folder, count)
    note = f"{seconds:.2f} s to make, size, write and sync {count:,} files, each in its folder, with system calls"
    return Row(_FILES, f"{count:,} queues: their files alone", messages / seconds, "msg/s", "", note)


def _calls_rows(cost: Cost) -> list[Row]:
    """Return the rates of the system calls of pulls alone, and the cost of our pulls relative to them."""
    rows = []
    for figure, key in _CALLS.items():
        ours, calls = getattr(cost, figure), getattr(cost, f"{figure}_calls")
        what = f"{COUNTS[-1]:,} queues: {_name(figure)}"
        note = "uvicorn and our client, answers of the same size: units and records are read and sent, without a check"
        rows.append(Row(key, f"{what}: its system calls alone", calls, "msg/s", "", note))
        rows.append(Row(_OVER_CALLS[figure], f"{what}: cost", calls / ours, "×", "", "relative to its system calls"))
    return rows


def _name(figure: str) -> str:
    return _NAMES.get(figure, figure)


def _cost(folder: Path, count: int, batches: int) -> Cost:
    with passing_store(folder) as data:
        return _cost_in(data, count, batches)


def _cost_in(data: Path, count: int, batches: int) -> Cost:
    topics, queues = max(1, count // _TOPIC_QUEUES), min(count, _TOPIC_QUEUES)
    each = batches // PRODUCERS
    with running(data, WRITER) as stack:
        with Producer(stack.writer_address, timeout_s=TIMEOUT_S) as producer:
            for topic in range(topics):
                producer.topics.create(f"bench-{topic}", queues=queues)
        times = run_clients(
            [partial(_append, stack.writer_address, topics, queues, number, each) for number in range(PRODUCERS)]
        )
        append_s = max(end for _, end in times) - min(begin for begin, _ in times)
    messages = PRODUCERS * each * MESSAGES
    built = index_once(data)
    build_s = built.durable_s * built.end_offset / built.bytes_built  # built.durable_s leaves out the first chunk
    with running(data, QUERY) as stack:
        (passes,) = run_clients([partial(_pull, stack.query_url, topics, queues)])
    for pulled, _ in passes:
        if pulled != messages:
            raise RuntimeError(f"pulled {pulled} of {messages} messages from {count} queues")
    first_pull, pull, pull_each = (pulled / pull_s for pulled, pull_s in passes)
    started = start_to_serving(data, "bench-0")
    calls = _pull_bare(data, count, queues, messages)
    return Cost(messages / append_s, messages / build_s, first_pull, pull, pull_each, started.pull_s, *calls)


def _pull_bare(data: Path, count: int, queues: int, messages: int) -> tuple[float, float]:
    """Return the rates, in messages per second, of a first and of a later pull by system calls alone."""
    with bare_server("benchmarks.bare_queues", str(data), str(queues), str(messages // count)) as server:
        (seconds,) = run_clients([partial(_take_bare, f"http://{server.address}", count, messages // count)])
    first, later = (messages / pull_s for pull_s in seconds)
    return first, later


def _take_bare(url: str, count: int, units: int, start: Start) -> list[float]:
    """Return the seconds of two passes over all queues, with answers as large as those of `_pull` and read-ahead."""
    each = max(1, ANSWER_BYTES // (units * (BODY_BYTES + RECORD_OVERHEAD)))
    paths = [f"/{first}/{min(each, count - first)}" for first in range(0, count, each)]
    connections = Connections(url, timeout_s=60)
    start()
    times = []
    for _ in range(2):
        begin = time.perf_counter()
        following = connections.ask(paths[0], {}, "*/*")
        for path in [*paths[1:], None]:
            asked = following
            if path is not None:
                following = connections.ask(path, {}, "*/*")
            asked.answer()
        times.append(time.perf_counter() - begin)
    return times


def _append(address: str, topics: int, queues: int, number: int, batches: int, start: Start) -> tuple[float, float]:
    """Send each batch to the next of all queues, which the producers share; return the times of start and end."""
    packed = plain_batch(MESSAGES, BODY_BYTES)
    with Producer(address, timeout_s=TIMEOUT_S) as producer:
        producer.log_info()  # connects
        start()
        begin = time.perf_counter()
        futures = []
        for batch in range(number, PRODUCERS * batches, PRODUCERS):
            topic, queue_id = divmod(batch % (topics * queues), queues)
            futures.append(producer.send_packed_async(f"bench-{topic}", packed, queue_id=queue_id))
        for future in futures:
            require_stored(future.result())
        return begin, time.perf_counter()


def _pull(url: str, topics: int, queues: int, start: Start) -> list[tuple[int, float]]:
    """Return messages and seconds of pulls of all queues: many queues per request, twice, then one queue per request.

    An answer contains one batch per queue.
    """
    everything = [(f"bench-{topic}", queue_id) for topic in range(topics) for queue_id in range(queues)]
    with Query(url) as query:
        puller = Puller(query, Place(url, "bench-0", queues, Form.RECORDS, MESSAGES))

        def pull_many() -> int:
            offsets = dict.fromkeys(everything, 0)
            pages = query.record_pages_of(offsets, max_messages=ANSWER_MESSAGES, max_bytes=ANSWER_BYTES)
            return sum(page.message_count for _, page in pages)

        def pull_each() -> int:
            return sum(puller.pull_all(topic, queue_id) for topic, queue_id in everything)

        puller.pull_all(*everything[0])  # warm-up
        start()
        passes = []
        for pull in (pull_many, pull_many, pull_each):
            begin = time.perf_counter()
            passes.append((pull(), time.perf_counter() - begin))
        return passes


def _rates(costs: dict[int, Cost]) -> Plot:
    counts = [float(count) for count in costs]
    lines = {
        figure: Line(counts, [float(getattr(cost, figure)) for cost in costs.values()])
        for figure, unit in _FIGURES.items()
        if unit == "msg/s"
    }
    return Plot("growth with the number of queues: rates", "queues", "messages/s", PlotKind.GROWTH, lines)


def _starts(costs: dict[int, Cost]) -> Plot:
    line = Line([float(count) for count in costs], [cost.start_s for cost in costs.values()])
    return Plot("growth with the number of queues: start", "queues", "s", PlotKind.GROWTH, {"first pull": line})


_KEYS = (
    *(f"queues_{count}_{figure}" for count in _SHOWN for figure in _FIGURES),
    _FILES,
    *(key for figure in _CALLS for key in (_CALLS[figure], _OVER_CALLS[figure])),
    *(f"queues_ratio_{figure}" for figure in _FIGURES),
)
BENCHMARKS = (Benchmark("queues", _KEYS, _measure, "sync"),)
