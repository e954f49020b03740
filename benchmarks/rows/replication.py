"""Appends of a group's writer with one and two replicas beside those of a single node, in turn, all on this machine.

Each member syncs each batch, so that two or three members share this machine's disk and processors.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import append_to_visible
from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.producers import PRODUCERS, TIMEOUT_S, Load, append
from benchmarks.replication_group import TOPIC, group, time_send
from benchmarks.report import Result, Row
from benchmarks.stores import passing_store
from tidemark.client import Producer
from tidemark.local.local_stack import PIPELINE, QUERY, WRITER

_SHAPES = {(100, 1024): 2_000, (1_000, 100): 800}  # batches of a producer
_REPLICAS = (0, 1, 2)
_ROUNDS = 3
_SENDS = 1_000
_RATE = 100.0
_HALF = "≥ 0.5"
_VISIBLE_RATIO = "replication_visible_p50_of_writer"


def _measure(folder: Path, scale: float) -> Result:
    rates: dict[tuple[tuple[int, int], int], list[float]] = {}
    latencies: dict[int, list[float]] = {}
    with contextlib.ExitStack() as stack, passing_store(folder / "replication") as data:
        writers = {count: stack.enter_context(_writer(data / str(count), count)) for count in _REPLICAS}
        for _ in range(_ROUNDS):
            for count, address in writers.items():
                for shape, batches in _SHAPES.items():
                    load = Load(TOPIC, *shape, batches=max(40, int(batches * scale)))
                    rates.setdefault((shape, count), []).append(append(address, load).messages_per_s)
                (times,) = run_clients([partial(_send, address, max(100, int(_SENDS * scale)))])
                latencies.setdefault(count, []).append(times)
        visible = _time_visible(data / "visible", scale)
    return Result([*_rate_rows(rates), *_latency_rows(latencies), *_visible_rows(*visible)], [])


@contextlib.contextmanager
def _writer(data: Path, replicas: int) -> Iterator[str]:
    """Run the writer services of a group with that many replicas; yield the writer's address."""
    with group(data, replicas, (WRITER,)) as members:
        yield members["a"].writer_address


def _send(address: str, count: int, start: Start) -> float:
    """Return the median time of a message whose answer is waited for, in milliseconds."""
    with Producer(address, timeout_s=TIMEOUT_S) as producer:
        for _ in range(count // 10):
            time_send(producer)
        start()
        return float(np.median([time_send(producer) for _ in range(count)])) * 1_000


def _time_visible(data: Path, scale: float) -> tuple[list[float], list[float]]:
    """Return the median time from append to visible in each round, in milliseconds: on the writer and on a replica."""
    on_writer: list[float] = []
    on_replica: list[float] = []
    with group(data, 1, (WRITER, PIPELINE, QUERY)) as members:
        for number in range(_ROUNDS):
            for member, medians in zip(members.values(), (on_writer, on_replica), strict=True):
                topic = f"{TOPIC}-{number}-{len(on_writer)}-{len(on_replica)}"
                times = append_to_visible.measure(
                    members["a"].writer_address,
                    member.query_url,
                    count=max(100, int(_SENDS * scale)),
                    rate=_RATE,
                    topic=topic,
                )
                medians.append(float(np.median(times.visible)))
    return on_writer, on_replica


def _rate_rows(rates: dict[tuple[tuple[int, int], int], list[float]]) -> Iterator[Row]:
    note = f"{PRODUCERS} producer processes; all members on this machine; median of {_ROUNDS} runs in turn"
    for (messages, size), count in rates:
        shape = (messages, size)
        key, name = f"replication_{messages}x{size}_{count}", f"append sync, {messages:,} × {size:,} B"
        yield Row(key, f"{name}, {_with(count)}", statistics.median(rates[shape, count]), "msg/s", "", note)
        if count:
            ratio = _ratio(rates[shape, count], rates[shape, 0])
            yield Row(f"{key}_of_alone", f"{name}, {_with(count)}, of a single node", ratio, "×", _HALF, note)


def _latency_rows(latencies: dict[int, list[float]]) -> Iterator[Row]:
    note = f"one message at a time; median of {_ROUNDS} runs in turn"
    for count, figures in latencies.items():
        key, name = f"replication_send_p50_{count}", f"send sync, single, {_with(count)}: p50"
        yield Row(key, name, statistics.median(figures), "ms", "", note)
        if count:
            ratio = _ratio(figures, latencies[0])
            yield Row(f"{key}_of_alone", f"{name}, of a single node", ratio, "×", "≤ 1.5", note)


def _visible_rows(on_writer: list[float], on_replica: list[float]) -> Iterator[Row]:
    note = f"1 replica, without Spark; {_RATE:g} messages a second, by long poll; median of {_ROUNDS} runs"
    for key, name, figures in (("writer", "the writer", on_writer), ("replica", "a replica", on_replica)):
        text = f"append → visible on {name}: p50"
        yield Row(f"replication_visible_p50_{key}", text, statistics.median(figures), "ms", "", note)
    ratio = _ratio(on_replica, on_writer)
    yield Row(_VISIBLE_RATIO, "append → visible on a replica: p50, of that on the writer", ratio, "×", "≤ 1.5", note)


def _with(count: int) -> str:
    return f"{count or 'no'} replica{'' if count == 1 else 's'}"


def _ratio(figures: list[float], others: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(figures, others, strict=True))


def _keys() -> Iterator[str]:
    for count in _REPLICAS:
        for messages, size in _SHAPES:
            yield from _with_ratio(f"replication_{messages}x{size}_{count}", count)
    for count in _REPLICAS:
        yield from _with_ratio(f"replication_send_p50_{count}", count)
    yield "replication_visible_p50_writer"
    yield "replication_visible_p50_replica"
    yield _VISIBLE_RATIO


def _with_ratio(key: str, count: int) -> tuple[str, ...]:
    return (key, f"{key}_of_alone") if count else (key,)


BENCHMARKS = (Benchmark("replication", tuple(_keys()), _measure, "sync"),)
