"""Single sends: threads of one program that each send one message and wait for its answer."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.producers import TIMEOUT_S, require_stored
from benchmarks.report import Plot, PlotKind, Result, Row, throughput_line
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.cli.local_stack import PIPELINE, WRITER
from tidemark.client import Producer

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
    """When each answer came, within *seconds* from the start."""
    with Producer(address, timeout_s=TIMEOUT_S) as producer, ThreadPoolExecutor(THREADS) as pool:
        producer.topics.create(_TOPIC, queues=_QUEUES)
        _send_from_all(pool, producer, warm_up_s)
        start()
        return np.sort(np.concatenate(_send_from_all(pool, producer, seconds)))


def _send_from_all(pool: ThreadPoolExecutor, producer: Producer, seconds: float) -> list[list[float]]:
    end = time.perf_counter() + seconds
    return list(pool.map(lambda number: _send_until(producer, number % _QUEUES, end), range(THREADS)))


def _send_until(producer: Producer, queue_id: int, end: float) -> list[float]:
    times: list[float] = []
    while True:
        require_stored(producer.send(_TOPIC, BODY, queue_id=queue_id))
        now = time.perf_counter()
        if now > end:
            return times
        times.append(now)


BENCHMARKS = (
    Benchmark(
        "send_single_sync",
        ("send_single_sync",),
        partial(_measure, "send_single_sync", "sync"),
        "sync",
        ("python", "fdatasync"),
    ),
    Benchmark("send_single_async", ("send_single_async",), partial(_measure, "send_single_async", "async"), "async"),
)
