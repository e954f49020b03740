"""Appends a second over AppendStream: four producers on the writer's own machine, each a process with its own stream.

Processes, because four threads of one interpreter would measure its lock. Batches are packed before the clock starts
(RocketMQ's figures leave encoding out, too); the row "send_table" has packing in it.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pyarrow as pa

from benchmarks.report import Row
from tidemark.cli.local_stack import WRITER, LocalStack
from tidemark.client import Producer
from tidemark.format.wire_batch import Element, encode_elements

PRODUCERS = 4
SHAPES = ((100, 1024, 1000), (1000, 100, 500))  # messages in a batch, bytes of a body, batches of each producer
TARGETS = {("sync", 100): "≥ 100,000", ("sync", 1000): "≥ 400,000"}
TABLE_ROWS = 500_000


def run(folder: Path, scale: float) -> list[Row]:
    """Both shapes in both flush modes, and a table in sync mode."""
    rows = []
    for mode in ("sync", "async"):
        environment = {"TIDEMARK_FLUSH_MODE": mode}
        with LocalStack(folder / f"append-{mode}", environment=environment, services=(WRITER,)) as stack:
            for messages, body_bytes, batches in SHAPES:
                rate = append_rate(stack.writer_address, messages, body_bytes, max(20, int(batches * scale)))
                name = f"append {mode}, {messages:,} × {body_bytes:,} B"
                note = f"{PRODUCERS} producer processes, AppendStream"
                rows.append(Row(name, rate, "msg/s", TARGETS.get((mode, messages), ""), note))
            rows.append(_table_rate(stack.writer_address, mode, max(20_000, int(TABLE_ROWS * scale))))
    return rows


def append_rate(address: str, messages: int, body_bytes: int, batches: int) -> float:
    """Acknowledged messages a second, from the first send to the last answer of all producers."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PRODUCERS + 1)
    arguments = (address, messages, body_bytes, batches, barrier)
    processes = [context.Process(target=_produce, args=(queue_id, *arguments)) for queue_id in range(PRODUCERS)]
    for process in processes:
        process.start()
    barrier.wait()
    before = time.perf_counter()
    barrier.wait()
    seconds = time.perf_counter() - before
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a producer ended with exit status {process.exitcode}")
    return PRODUCERS * batches * messages / seconds


def _produce(queue_id: int, address: str, messages: int, body_bytes: int, batches: int, barrier: Barrier) -> None:
    packed = encode_elements([Element(bytes(body_bytes))] * messages)
    with Producer(address, timeout_s=120) as producer:
        producer.send("bench", b"warm", queue_id=queue_id)
        barrier.wait()
        futures = [producer.send_packed_async("bench", packed, queue_id=queue_id) for _ in range(batches)]
        for future in futures:
            future.result()
        barrier.wait()


def _table_rate(address: str, mode: str, rows: int) -> Row:
    bodies = pa.array([f"{row:0100}" for row in range(rows)])
    table = pa.table({"body": bodies, "key": pa.array([f"k{row % 1000}" for row in range(rows)])})
    with Producer(address, timeout_s=120) as producer:
        producer.send_table(table.slice(0, 1000), "bench-table", key="key", body="body")
        before = time.perf_counter()
        producer.send_table(table, "bench-table", key="key", body="body")
        seconds = time.perf_counter() - before
    return Row(
        f"send_table {mode}, 1,000 × 100 B with keys", rows / seconds, "msg/s", "", "one producer, packing included"
    )
