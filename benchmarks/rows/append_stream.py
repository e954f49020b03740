"""Appends beside a bare gRPC stream, in turn: as many bytes of as large batches to a server that only answers.

A second bare server also writes and syncs the bytes: the floor of a log that gets its batches by gRPC.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc

from benchmarks.bare_grpc import SERVICE, STREAM
from benchmarks.bare_server import bare_server
from benchmarks.batches import plain_batch
from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.producers import PRODUCERS, Load, append
from benchmarks.report import Result, Row
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import Producer
from tidemark.client.producer.producer import MAX_IN_FLIGHT_BYTES
from tidemark.local.local_stack import WRITER

_TOPIC, _MESSAGES, _BODY_BYTES = "bench", 100, 1024
_BATCHES, _ROUNDS = 3000, 3
_APPEND, _BARE, _OF_BARE = "append_stream", "append_stream_bare", "append_stream_of_bare"
_STORED, _OF_STORED = "append_stream_stored", "append_stream_of_stored"


def _measure(folder: Path, scale: float) -> Result:
    load = Load(_TOPIC, _MESSAGES, _BODY_BYTES, max(40, int(_BATCHES * scale)))
    appended, bare, stored = [], [], []
    with (
        passing_store(folder / _APPEND) as data,
        running(data, WRITER, flush_mode="sync") as stack,
        bare_server("benchmarks.bare_grpc") as server,
        bare_server("benchmarks.bare_grpc", str(data / "bare")) as storing,
    ):
        with Producer(stack.writer_address) as producer:
            producer.topics.create(_TOPIC, queues=PRODUCERS)
        for _ in range(_ROUNDS):
            appended.append(append(stack.writer_address, load).messages_per_s)
            bare.append(_send_all(server.address, load))
            stored.append(_send_all(storing.address, load))
    note = f"{PRODUCERS} producer processes; median of {_ROUNDS} runs in turn"
    name = f"append sync, {_MESSAGES} × {_BODY_BYTES:,} B"
    rows = [
        Row(_APPEND, name, statistics.median(appended), "msg/s", "", note),
        Row(_BARE, f"{name}: a gRPC stream alone", statistics.median(bare), "msg/s", "", note),
        Row(_OF_BARE, f"{name}, of the stream alone", _ratio(appended, bare), "×", "≥ 0.7", note),
        Row(_STORED, f"{name}: a gRPC stream into a file", statistics.median(stored), "msg/s", "", f"{note}, synced"),
        Row(_OF_STORED, f"{name}, of the stream into a file", _ratio(appended, stored), "×", "", note),
    ]
    return Result(rows, [])


def _ratio(figures: list[float], others: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(figures, others, strict=True))


def _send_all(address: str, load: Load) -> float:
    """Return the messages per second of all clients together."""
    seconds = run_clients([partial(_stream, address, load)] * PRODUCERS)
    return PRODUCERS * load.batches * load.messages / max(seconds)


def _stream(address: str, load: Load, start: Start) -> float:
    """Send the load twice, of which the first time is not counted; return the seconds of the second one."""
    frame = plain_batch(load.messages, load.body_bytes)
    with grpc.insecure_channel(address) as channel:
        _send(channel, frame, load.batches)
        start()
        before = time.perf_counter()
        _send(channel, frame, load.batches)
        return time.perf_counter() - before


def _send(channel: grpc.Channel, frame: bytes, count: int) -> None:
    """Send *count* frames on a stream, with as many unanswered as a producer's limit allows."""
    free = threading.Semaphore(MAX_IN_FLIGHT_BYTES // len(frame))

    def frames() -> Iterator[bytes]:
        for _ in range(count):
            free.acquire()
            yield frame

    call: Any = channel.stream_stream(f"/{SERVICE}/{STREAM}")
    for _ in call(frames()):
        free.release()


BENCHMARKS = (Benchmark("append_stream", (_APPEND, _BARE, _OF_BARE, _STORED, _OF_STORED), _measure, "sync"),)
