"""Single sends: threads of one program that send a message and wait for its answer, and calls to an echo server."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import grpc
import numpy as np
from numpy.typing import NDArray

from benchmarks.bare_grpc import METHOD, SERVICE
from benchmarks.bare_server import bare_server
from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.producers import TIMEOUT_S, require_stored
from benchmarks.report import Plot, PlotKind, Result, Row, throughput_line
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import Producer
from tidemark.local.local_stack import PIPELINE, WRITER

THREADS = 16
BODY = b"x" * 100
WARM_UP_S = 2.0
DURATION_S = 10.0
_TOPIC, _QUEUES = "bench", 4
_TARGETS = {"sync": "≥ RocketMQ", "async": "near RocketMQ"}


def _measure(key: str, mode: str, folder: Path, scale: float) -> Result:
    seconds = max(1.0, DURATION_S * scale)
    with passing_store(folder / key) as data, running(data, WRITER, PIPELINE, flush_mode=mode) as stack:
        (times,) = run_clients([partial(_send, stack.writer_address, max(0.5, WARM_UP_S * scale), seconds)])
    name = f"send {mode}, single messages of {len(BODY)} B"
    note = f"{THREADS} threads of one producer, each waiting for its answer; pipeline running"
    line = throughput_line(times, np.ones(len(times)))
    plot = Plot(f"{name}: over time", "s", "messages/s", PlotKind.LINES, {"acknowledged": line})
    return Result([Row(key, name, len(times) / seconds, "msg/s", _TARGETS[mode], note)], [plot])


def _send(address: str, warm_up_s: float, seconds: float, start: Start) -> NDArray[np.float64]:
    """Return the time of each answer within *seconds* from the start."""
    with Producer(address, timeout_s=TIMEOUT_S) as producer, ThreadPoolExecutor(THREADS) as pool:
        producer.topics.create(_TOPIC, queues=_QUEUES)
        _send_from_all(pool, producer, warm_up_s)
        start()
        return np.sort(np.concatenate(_send_from_all(pool, producer, seconds)))


def _send_from_all(pool: ThreadPoolExecutor, producer: Producer, seconds: float) -> list[list[float]]:
    def send(number: int) -> None:
        require_stored(producer.send(_TOPIC, BODY, queue_id=number % _QUEUES))

    return _from_all(pool, send, seconds)


def _from_all(pool: ThreadPoolExecutor, send: Callable[[int], object], seconds: float) -> list[list[float]]:
    """Call *send* with each thread's number, repeatedly; return the times at which the calls returned, by thread."""
    end = time.perf_counter() + seconds
    return list(pool.map(lambda number: _until(end, partial(send, number)), range(THREADS)))


def _until(end: float, send: Callable[[], object]) -> list[float]:
    times: list[float] = []
    while True:
        send()
        now = time.perf_counter()
        if now > end:
            return times
        times.append(now)


def _measure_bare(_: Path, scale: float) -> Result:
    seconds = max(1.0, DURATION_S * scale)
    with bare_server("benchmarks.bare_grpc") as server:
        (calls,) = run_clients([partial(_call, server.address, max(0.5, WARM_UP_S * scale), seconds)])
    note = f"grpc.aio and grpc's client alone: {THREADS} threads on one channel, each waiting for its own bytes"
    name = f"gRPC calls of {len(BODY)} B with nothing behind them, a call a message"
    return Result([Row("send_single_bare", name, calls / seconds, "msg/s", "", note)], [])


def _call(address: str, warm_up_s: float, seconds: float, start: Start) -> int:
    """Return the number of answers in *seconds*."""
    with grpc.insecure_channel(address) as channel, ThreadPoolExecutor(THREADS) as pool:
        call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/{METHOD}")
        _from_all(pool, lambda _: call(BODY), warm_up_s)
        start()
        return sum(map(len, _from_all(pool, lambda _: call(BODY), seconds)))


BENCHMARKS = (
    Benchmark(
        "send_single_sync",
        ("send_single_sync",),
        partial(_measure, "send_single_sync", "sync"),
        "sync",
        ("python", "fdatasync"),
    ),
    Benchmark("send_single_async", ("send_single_async",), partial(_measure, "send_single_async", "async"), "async"),
    Benchmark("send_single_bare", ("send_single_bare",), _measure_bare),
)
