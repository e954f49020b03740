"""Single sends that share batches: threads of one program that use the producer's accumulator."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.producers import TIMEOUT_S, require_stored
from benchmarks.report import Plot, PlotKind, Result, Row, throughput_line
from benchmarks.rows.send_single import BODY, DURATION_S, THREADS, WARM_UP_S
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import Producer, SendResult
from tidemark.local.local_stack import PIPELINE, WRITER

_TOPIC, _QUEUES = "bench", 4
_WAITING, _ASYNC = "accumulated_send", "accumulated_send_async"
_NOTES = {
    _WAITING: "each waiting for its answer: at most 16 a round trip",
    _ASYNC: "none waiting, each answer checked",
}
_TARGETS = {_WAITING: "", _ASYNC: "≥ 32 k: 10 × RocketMQ's single sends"}
_Send = Callable[[Producer, float], NDArray[np.float64]]


def _measure(folder: Path, scale: float) -> Result:
    rows, plots = [], []
    for key, send in ((_WAITING, _send_waiting), (_ASYNC, _send_async)):
        seconds = max(1.0, DURATION_S * scale)
        with passing_store(folder / key) as data, running(data, WRITER, PIPELINE, flush_mode="sync") as stack:
            (times,) = run_clients([partial(_send, send, stack.writer_address, max(0.5, WARM_UP_S * scale), seconds)])
        name = f"{key.replace('_', ' ')} sync, single messages of {len(BODY)} B"
        note = f"{THREADS} threads of one producer, {_NOTES[key]}; pipeline running"
        rows.append(Row(key, name, len(times) / seconds, "msg/s", _TARGETS[key], note))
        line = throughput_line(times, np.ones(len(times)))
        plots.append(Plot(f"{name}: over time", "s", "messages/s", PlotKind.LINES, {"acknowledged": line}))
    return Result(rows, plots)


def _send(send: _Send, address: str, warm_up_s: float, seconds: float, start: Start) -> NDArray[np.float64]:
    """Return the time of each answer within *seconds* from the start."""
    with Producer(address, timeout_s=TIMEOUT_S, accumulate=True) as producer:
        producer.topics.create(_TOPIC, queues=_QUEUES)
        send(producer, warm_up_s)
        start()
        return send(producer, seconds)


def _send_waiting(producer: Producer, seconds: float) -> NDArray[np.float64]:
    end = time.perf_counter() + seconds

    def run() -> list[float]:
        times: list[float] = []
        while not times or times[-1] < end:
            require_stored(producer.send(_TOPIC, BODY))
            times.append(time.perf_counter())
        return times

    return _times([time for times in _in_threads(run) for time in times], end)


def _send_async(producer: Producer, seconds: float) -> NDArray[np.float64]:
    end = time.perf_counter() + seconds
    times: list[float] = []
    failures: list[BaseException] = []

    def note(done: Future[SendResult]) -> None:
        try:
            require_stored(done.result())
        except Exception as failure:
            failures.append(failure)
        times.append(time.perf_counter())

    def run() -> list[float]:
        while time.perf_counter() < end and not failures:
            producer.send_async(_TOPIC, BODY).add_done_callback(note)
        return []

    _in_threads(run)
    producer.flush(TIMEOUT_S)
    if failures:
        raise failures[0]
    return _times(times, end)


def _in_threads(run: Callable[[], list[float]]) -> list[list[float]]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda _: run(), range(THREADS)))


def _times(times: list[float], end: float) -> NDArray[np.float64]:
    ordered = np.sort(times)
    return ordered[ordered <= end]


BENCHMARKS = (Benchmark("accumulated", (_WAITING, _ASYNC), _measure, "sync"),)
