"""Appends beside a bare gRPC stream, in turn: as many bytes of as large batches to a server that only answers."""

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
_BATCHES, _PAIRS = 3000, 3
_APPEND, _BARE, _OF_BARE = "append_stream", "append_stream_bare", "append_stream_of_bare"


def _measure(folder: Path, scale: float) -> Result:
    load = Load(_TOPIC, _MESSAGES, _BODY_BYTES, max(40, int(_BATCHES * scale)))
    appended, bare = [], []
    with (
        passing_store(folder / _APPEND) as data,
        running(data, WRITER, flush_mode="sync") as stack,
        bare_server("benchmarks.bare_grpc") as server,
    ):
        with Producer(stack.writer_address) as producer:
            producer.topics.create(_TOPIC, queues=PRODUCERS)
        for _ in range(_PAIRS):
            appended.append(append(stack.writer_address, load).messages_per_s)
            bare.append(_send_all(server.address, load))
    note = f"{PRODUCERS} producer processes; median of {_PAIRS} runs in turn"
    ratios = [one / other for one, other in zip(appended, bare, strict=True)]
    name = f"append sync, {_MESSAGES} × {_BODY_BYTES:,} B"
    rows = [
        Row(_APPEND, name, statistics.median(appended), "msg/s", "", note),
        Row(_BARE, f"{name}: a gRPC stream alone", statistics.median(bare), "msg/s", "", note),
        Row(_OF_BARE, f"{name}, of the stream alone", statistics.median(ratios), "×", "≥ 0.7", note),
    ]
    return Result(rows, [])


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


BENCHMARKS = (Benchmark("append_stream", (_APPEND, _BARE, _OF_BARE), _measure, "sync"),)
