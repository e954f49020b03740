"""Appends per second over AppendStream, of batches packed before the clock starts, and of whole tables."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from benchmarks.batches import table
from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.producers import PRODUCERS, TIMEOUT_S, Load, append
from benchmarks.report import Plot, PlotKind, Result, Row
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import BATCH_QUEUE, Producer, SendStatus
from tidemark.local.local_stack import PIPELINE, WRITER

_BATCHES = {(100, 1024): 5000, (1000, 100): 2000}  # per producer, by messages per batch and bytes of a body
_TARGETS = {
    "append_sync_100x1024": "≥ 3 × RocketMQ",
    "append_async_100x1024": "≥ 2 × RocketMQ",
    "append_sync_1000x100": "≥ 3 × RocketMQ",
    "append_sync_1000x100_batch_queue": "≥ 2 × RocketMQ",
}
_TOPIC = "bench"
_TABLE_ROWS = 2_000_000


def _append(
    key: str,
    shape: tuple[int, int],
    mode: str,
    folder: Path,
    scale: float,
    *,
    services: tuple[str, ...] = (WRITER,),
    unique_keys: bool = False,
    attributes: dict[str, str] | None = None,
) -> Result:
    messages, body_bytes = shape
    load = Load(_TOPIC, messages, body_bytes, max(40, int(_BATCHES[shape] * scale)), unique_keys=unique_keys)
    with passing_store(folder / key) as data, running(data, *services, flush_mode=mode) as stack:
        with Producer(stack.writer_address) as producer:
            producer.topics.create(_TOPIC, queues=PRODUCERS, attributes=attributes)
        rate = append(stack.writer_address, load)
    name = f"append {mode}, {messages:,} × {body_bytes:,} B{', BatchCQ' if attributes else ''}"
    note = f"{PRODUCERS} producer processes, packed batches{', UNIQ_KEY in each message' if unique_keys else ''}; "
    note += "pipeline running" if PIPELINE in services else "writer alone"
    plot = Plot(f"{name}: over time", "s", "messages/s", PlotKind.LINES, {"acknowledged": rate.line})
    return Result([Row(key, name, rate.messages_per_s, "msg/s", _TARGETS[key], note)], [plot])


def _send_table(key: str, folder: Path, scale: float) -> Result:
    rows = max(100_000, int(_TABLE_ROWS * scale))
    with passing_store(folder / key) as data, running(data, WRITER, PIPELINE) as stack:
        (seconds,) = run_clients([partial(_send_one_table, stack.writer_address, rows)])
    note = f"{rows:,} rows with a UNIQ_KEY column, one producer, packing included; pipeline running"
    target = _TARGETS["append_sync_1000x100"]
    return Result([Row(key, "send_table sync, 1,000 × 100 B", rows / seconds, "msg/s", target, note)], [])


def _send_one_table(address: str, rows: int, start: Start) -> float:
    """Return the seconds from the call to the last acknowledgement."""
    with Producer(address, timeout_s=TIMEOUT_S) as producer:
        producer.send_table(table(rows, 100), _TOPIC, body="body", unique_key="id")  # warm-up, as for the other brokers
        messages = table(rows, 100)
        start()
        before = time.perf_counter()
        result = producer.send_table(messages, _TOPIC, body="body", unique_key="id")
        seconds = time.perf_counter() - before
    if result.status is not SendStatus.PUT_OK or result.count != rows:
        raise RuntimeError(f"{result.count} of {rows} rows were stored, with status {result.status.name}")
    return seconds


def _benchmark(
    key: str,
    shape: tuple[int, int],
    mode: str,
    *,
    services: tuple[str, ...] = (WRITER,),
    unique_keys: bool = False,
    attributes: dict[str, str] | None = None,
) -> Benchmark:
    measure = partial(_append, key, shape, mode, services=services, unique_keys=unique_keys, attributes=attributes)
    return Benchmark(key, (key,), measure, mode, () if attributes else ("memcpy", "python"))


BENCHMARKS = (
    _benchmark("append_sync_100x1024", (100, 1024), "sync"),
    _benchmark("append_async_100x1024", (100, 1024), "async"),
    _benchmark("append_sync_1000x100", (1000, 100), "sync", services=(WRITER, PIPELINE), unique_keys=True),
    Benchmark(
        "send_table_sync_1000x100",
        ("send_table_sync_1000x100",),
        partial(_send_table, "send_table_sync_1000x100"),
        "sync",
    ),
    _benchmark(
        "append_sync_1000x100_batch_queue",
        (1000, 100),
        "sync",
        services=(WRITER, PIPELINE),
        unique_keys=True,
        attributes=BATCH_QUEUE,
    ),
)
