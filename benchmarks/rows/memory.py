"""Growth of memory: ten minutes of appends, long polls and large pulls, measured after a tenth and at the end.

First it fills the writer's window of recognised batches, whose growth is bounded. It takes the full ten minutes, so it
runs only when it is named.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from benchmarks.batches import plain_batch
from benchmarks.benchmark import Benchmark
from benchmarks.processes import WORKER, resident_bytes, roles_of
from benchmarks.producers import require_stored
from benchmarks.report import Line, Plot, PlotKind, Result, Row
from benchmarks.stack import running
from benchmarks.stores import passing_store
from tidemark.client import Producer
from tidemark.format.elements import Element, encode_elements
from tidemark.local.local_stack import QUERY, WRITER, LocalStack

DURATION_S = 600.0
_SAMPLES = 100
_BATCHES_A_SECOND = 20
_BATCH = encode_elements([Element(bytes(1024), b"TAGS\x01A\x02")] * 100)
_TOPIC = "flat"
_IN_FLIGHT = 1_000  # while the window is filled
_KEYS = {WRITER: "writer", QUERY: "query", WORKER: "worker"}
_TARGETS = {WRITER: "< 250", QUERY: "< 250"}


def _measure(folder: Path, scale: float) -> Result:
    seconds = DURATION_S * scale
    stopping = threading.Event()
    settings = {"TIDEMARK_EPOCH_MS": "5000"}
    with (
        passing_store(folder / "memory") as data,
        running(data, settings=settings) as stack,
        ThreadPoolExecutor(3) as pool,
    ):
        with Producer(stack.writer_address) as producer:
            producer.topics.create(_TOPIC, queues=1)
            fill_window(producer, _TOPIC)
        load = [
            pool.submit(_append, stack.writer_address, stopping),
            pool.submit(_consume, stack.query_url, "application/json", stopping),
            pool.submit(_consume, stack.query_url, "application/octet-stream", stopping),
        ]
        try:
            samples = [_sample(stack, seconds / _SAMPLES) for _ in range(_SAMPLES)]
        finally:
            stopping.set()
        for future in load:
            future.result()
    return _result(samples, seconds)


def fill_window(producer: Producer, topic: str) -> None:
    """Fill the writer's window of recognised batches with small batches, each with its own request id."""
    small = plain_batch(1, 100)
    left = producer.log_info().idempotence_window_batches
    while left > 0:
        sent = [producer.send_packed_async(topic, small, queue_id=0) for _ in range(min(left, _IN_FLIGHT))]
        for future in sent:
            require_stored(future.result())
        left -= len(sent)


def _sample(stack: LocalStack, wait_s: float) -> dict[str, float]:
    """Return the MB of each role after *wait_s*: RssAnon + RssShmem, the greatest of several processes."""
    time.sleep(wait_s)
    roles = roles_of(stack)
    return {role: max(resident_bytes(one.pid) for one in roles.get(role, [])) / 1e6 for role in _KEYS}


def _result(samples: list[dict[str, float]], seconds: float) -> Result:
    early, late = samples[_SAMPLES // 10 - 1], samples[-1]
    note = f"after {seconds:.0f} s of 2,000 messages of 1 KiB a second and two consumers"
    growth_note = f"from {seconds / 10:.0f} s to {seconds:.0f} s"
    rows = []
    for role, key in _KEYS.items():
        rows.append(Row(f"memory_{key}_mb", f"memory, {role}", late[role], "MB", _TARGETS.get(role, ""), note))
        growth = late[role] - early[role]
        rows.append(Row(f"memory_{key}_growth_mb", f"memory, {role}: growth", growth, "MB", "flat", growth_note))
    times = [seconds * (number + 1) / _SAMPLES for number in range(_SAMPLES)]
    lines = {role: Line(times, [sample[role] for sample in samples]) for role in _KEYS}
    return Result(rows, [Plot("memory over time", "s", "MB", PlotKind.LINES, lines)])


def _append(address: str, stopping: threading.Event) -> None:
    with Producer(address, timeout_s=30) as producer:
        while not stopping.wait(1 / _BATCHES_A_SECOND):
            require_stored(producer.send_packed_async(_TOPIC, _BATCH, queue_id=0).result())


def _consume(url: str, accept: str, stopping: threading.Event) -> None:
    offset = 0
    with httpx.Client(base_url=url, headers={"accept": accept}, timeout=60) as client:
        while not stopping.is_set():
            arguments = {"offset": offset, "wait_ms": 500, "max_messages": 4096, "max_bytes": 4 << 20}
            answer = client.get(f"/v1/topics/{_TOPIC}/queues/0/messages", params=arguments).raise_for_status()
            is_json = accept.endswith("json")
            offset = answer.json()["next_offset"] if is_json else int(answer.headers["tidemark-next-offset"])


BENCHMARKS = (
    Benchmark(
        "memory",
        tuple(f"memory_{key}_{what}" for key in _KEYS.values() for what in ("mb", "growth_mb")),
        _measure,
        "sync",
        when_named=True,
    ),
)
