"""Pulls of one consumer over HTTP, in each form of an answer, and the upper bound of any answer."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.bare_server import bare_server
from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.producers import PRODUCERS, Load
from benchmarks.pulls import ANSWER_BYTES, Form, Place, Pulls, pull
from benchmarks.report import Plot, PlotKind, Result, Row, throughput_line
from benchmarks.stack import running
from benchmarks.stores import LARGE_BATCH, RECORD_OVERHEAD, batches_for, shared_store
from tidemark.client import BATCH_QUEUE
from tidemark.client.rest.connections import Connections
from tidemark.local.local_stack import QUERY

_LOG_BYTES = {1024: 1.5e9, 100: 0.6e9}  # log of the store, by bytes of a body
WARM_UP_S, DURATION_S = 3.0, 8.0
_LEAST_SCALE_OF_FILE = 0.2  # a smaller file would fit in a processor's cache
_TOPIC = "bench"
_TARGETS = {
    "pull_raw_1024": "≥ 4 × Kafka",
    "pull_raw_checked_1024": "",
    "pull_raw_by_service_1024": "",
    "pull_arrow_1024": "≥ 2 × Kafka",
    "pull_arrow_by_client_1024": "≥ 2 × Kafka",
    "pull_json_1024": "≥ RocketMQ",
    "pull_arrow_inner_100": "≥ 2 × RocketMQ",
}
_FORMS = {
    Form.RECORDS: "records as stored, unchecked",
    Form.CHECKED_RECORDS: "records as stored, checked by the client",
    Form.SERVICE_CHECKED_RECORDS: "records as stored, checked by the service",
    Form.ARROW: "Arrow",
    Form.CLIENT_ARROW: "Arrow, made by the client of records that it checks",
    Form.JSON: "JSON, bodies as text",
}


def _measure(
    key: str, form: Form, body_bytes: int, attributes: dict[str, str] | None, folder: Path, scale: float
) -> Result:
    batches = batches_for(_LOG_BYTES[body_bytes] * scale, messages=LARGE_BATCH, body_bytes=body_bytes)
    load = Load(_TOPIC, LARGE_BATCH, body_bytes, batches, unique_keys=True)
    name = f"pull-{body_bytes}{'-inner' if attributes else ''}-{scale:g}"
    data = shared_store(folder / name, load, attributes=attributes)
    with running(data, QUERY) as stack:
        place = Place(stack.query_url, _TOPIC, PRODUCERS, form)
        pulls = pull(place, warm_up_s=max(0.5, WARM_UP_S * scale), seconds=max(1.0, DURATION_S * scale))
    return _result(key, form, body_bytes, pulls)


def _result(key: str, form: Form, body_bytes: int, pulls: Pulls) -> Result:
    what = _FORMS[form]
    of = "bodies" if form in (Form.ARROW, Form.CLIENT_ARROW, Form.JSON) else "records"
    name = f"pull {body_bytes:,} B{' of inner batches' if 'inner' in key else ''}, {what}"
    note = f"{pulls.bytes.sum() / pulls.seconds / 1e6:,.0f} MB/s of {of}; one consumer, a thread for each of "
    note += f"{PRODUCERS} queues, answers of {form.answer_bytes >> 20} MiB"
    rate = float(pulls.messages.sum() / pulls.seconds)
    plot = Plot(
        f"{name}: over time",
        "s",
        "messages/s",
        PlotKind.LINES,
        {"pulled": throughput_line(pulls.times, pulls.messages)},
    )
    return Result([Row(key, name, rate, "msg/s", _TARGETS[key], note)], [plot])


def _benchmark(key: str, form: Form, body_bytes: int, attributes: dict[str, str] | None = None) -> Benchmark:
    calibration = () if attributes else ("python",) if form is Form.JSON else ("memcpy", "crc")
    return Benchmark(key, (key,), partial(_measure, key, form, body_bytes, attributes), calibration=calibration)


def _measure_ceiling(folder: Path, scale: float) -> Result:
    """Measure answers from memory, and from a file in the page cache whose CRC is computed."""
    file = folder / "ceiling"
    file.write_bytes(os.urandom(int(_LOG_BYTES[1024] * max(scale, _LEAST_SCALE_OF_FILE))))
    try:
        rows = [
            _ceiling_row("pull_ceiling", "HTTP answers of nothing", "sent out of memory", scale),
            _ceiling_row(
                "pull_ceiling_read", "HTTP answers of a file", "read, their CRC taken, and sent", scale, str(file)
            ),
        ]
    finally:
        file.unlink()
    return Result(rows, [])


def _ceiling_row(key: str, name: str, what: str, scale: float, *file: str) -> Row:
    seconds = max(1.0, DURATION_S * scale)
    with bare_server("benchmarks.bare_http", str(ANSWER_BYTES), *file) as server:
        client = partial(_take_answers, f"http://{server.address}", max(0.5, WARM_UP_S * scale), seconds)
        (answers,) = run_clients([client])
    rate = answers * ANSWER_BYTES / seconds
    note = f"{rate / 1e6:,.0f} MB/s; uvicorn and our client alone: answers of {ANSWER_BYTES >> 20} MiB {what}, "
    note += "read and discarded"
    return Row(key, f"{name}, in records of 1 KiB bodies", rate / (1024 + RECORD_OVERHEAD), "msg/s", "", note)


def _take_answers(url: str, warm_up_s: float, seconds: float, start: Start) -> int:
    """Return the number of answers in *seconds*, read as by `pull`: a thread per queue, with read-ahead of one."""
    connections = Connections(url, timeout_s=60)

    def take(duration_s: float, _: int) -> int:
        end = time.perf_counter() + duration_s
        taken, following = 0, connections.ask("/", {}, "*/*")
        while time.perf_counter() < end:
            asked, following = following, connections.ask("/", {}, "*/*")
            asked.answer()
            taken += 1
        following.answer()
        return taken

    with ThreadPoolExecutor(PRODUCERS) as pool:
        list(pool.map(partial(take, warm_up_s), range(PRODUCERS)))
        start()
        return sum(pool.map(partial(take, seconds), range(PRODUCERS)))


BENCHMARKS = (
    _benchmark("pull_raw_1024", Form.RECORDS, 1024),
    _benchmark("pull_raw_checked_1024", Form.CHECKED_RECORDS, 1024),
    _benchmark("pull_raw_by_service_1024", Form.SERVICE_CHECKED_RECORDS, 1024),
    _benchmark("pull_arrow_1024", Form.ARROW, 1024),
    _benchmark("pull_arrow_by_client_1024", Form.CLIENT_ARROW, 1024),
    _benchmark("pull_json_1024", Form.JSON, 1024),
    _benchmark("pull_arrow_inner_100", Form.ARROW, 100, BATCH_QUEUE),
    Benchmark("pull_ceiling", ("pull_ceiling", "pull_ceiling_read"), _measure_ceiling, calibration=("memcpy",)),
)
