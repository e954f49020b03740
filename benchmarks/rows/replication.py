"""Appends of a group's writer with one and two replicas beside those of a single node, in turn, all on this machine.

Each member syncs each batch, so that two or three members share this machine's disk and processors.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import append_to_visible
from benchmarks.benchmark import Benchmark
from benchmarks.clients import Start, run_clients
from benchmarks.producers import PRODUCERS, TIMEOUT_S, Load, append, require_stored
from benchmarks.report import Result, Row
from benchmarks.stack import environment
from benchmarks.stores import passing_store
from tidemark.client import Producer
from tidemark.client.wire.group_admin import ReplicationGroup
from tidemark.local.local_stack import PIPELINE, QUERY, WRITER, LocalStack, free_port
from tidemark.settings.engine import Engine

_TOPIC = "bench"
_SHAPES = {(100, 1024): 2_000, (1_000, 100): 800}  # batches of a producer
_REPLICAS = (0, 1, 2)
_ROUNDS = 3
_SENDS = 1_000
_HAND_OVERS = 6  # to and fro
_RATE = 100.0
_HALF = "≥ 0.5"
_VISIBLE_RATIO = "replication_visible_p50_of_writer"


def _measure(folder: Path, scale: float) -> Result:
    rates: dict[tuple[tuple[int, int], int], list[float]] = {}
    latencies: dict[int, list[float]] = {}
    with contextlib.ExitStack() as stack, passing_store(folder / "replication") as data:
        writers = {count: stack.enter_context(_members(data / str(count), count)) for count in _REPLICAS}
        for _ in range(_ROUNDS):
            for count, address in writers.items():
                for shape, batches in _SHAPES.items():
                    load = _load(shape, batches, scale)
                    rates.setdefault((shape, count), []).append(append(address, load).messages_per_s)
                (times,) = run_clients([partial(_send, address, max(100, int(_SENDS * scale)))])
                latencies.setdefault(count, []).append(times)
        visible = _time_visible(data / "visible", scale)
        waits = _time_hand_overs(data / "hand-over", scale)
    return Result([*_rate_rows(rates), *_latency_rows(latencies), *_visible_rows(*visible), _hand_over_row(waits)], [])


def _load(shape: tuple[int, int], batches: int, scale: float) -> Load:
    return Load(_TOPIC, *shape, batches=max(40, int(batches * scale)))


@contextlib.contextmanager
def _members(data: Path, replicas: int) -> Iterator[str]:
    """Run the writer services of a group with that many replicas; yield the writer's address."""
    with _group(data, replicas, (WRITER,)) as members:
        yield members[0].writer_address


@contextlib.contextmanager
def _group(
    data: Path, replicas: int, services: tuple[str, ...], min_in_sync: int | None = None
) -> Iterator[list[LocalStack]]:
    """Run *services* of each member of a group with that many replicas. The first member is the writer.

    min_in_sync: default: all members
    """
    names = "abc"[: replicas + 1]
    ports = {name: free_port() for name in names}
    group = {
        "TIDEMARK_REPLICATION": "sync" if replicas else "off",
        "TIDEMARK_GROUP_MEMBERS": ",".join(f"{name}=127.0.0.1:{port}" for name, port in ports.items()),
        "TIDEMARK_MIN_IN_SYNC": str(min_in_sync or replicas + 1),
        "TIDEMARK_REPLICA_TIMEOUT_MS": "60000",  # producers keep 64 MiB in flight
        "TIDEMARK_PIPELINE": Engine.PLAIN,
    }
    members = [
        LocalStack(
            data / name,
            writer_port=port,
            environment={**environment("sync", group), "TIDEMARK_MEMBER": name},
            services=services,
        )
        for name, port in ports.items()
    ]
    try:
        for member in members:
            member.start()
        if replicas:
            _promote(members[0].writer_address, replicas + 1)
        with Producer(members[0].writer_address, timeout_s=TIMEOUT_S) as producer:
            producer.topics.create(_TOPIC, queues=PRODUCERS)
        yield members
    finally:
        for member in members:
            member.stop()


def _promote(address: str, members: int) -> None:
    group = ReplicationGroup(address)
    group.promote("a")
    deadline = time.monotonic() + TIMEOUT_S
    while group.status().in_sync < members:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{members} members are not in sync after {TIMEOUT_S:g} s")
        time.sleep(0.05)


def _send(address: str, count: int, start: Start) -> float:
    """Return the median time of a message whose answer is waited for, in milliseconds."""
    with Producer(address, timeout_s=TIMEOUT_S) as producer:
        _time_sends(producer, count // 10)
        start()
        return float(np.median(_time_sends(producer, count))) * 1_000


def _time_sends(producer: Producer, count: int) -> list[float]:
    times = []
    for _ in range(count):
        before = time.perf_counter()
        require_stored(producer.send(_TOPIC, b"x" * 100, queue_id=0))
        times.append(time.perf_counter() - before)
    return times


def _time_visible(data: Path, scale: float) -> tuple[list[float], list[float]]:
    """Return the median time from append to visible in each round, in milliseconds: on the writer and on a replica."""
    on_writer: list[float] = []
    on_replica: list[float] = []
    with _group(data, 1, (WRITER, PIPELINE, QUERY)) as members:
        for number in range(_ROUNDS):
            for member, medians in zip(members, (on_writer, on_replica), strict=True):
                topic = f"{_TOPIC}-{number}-{len(on_writer)}-{len(on_replica)}"
                times = append_to_visible.measure(
                    members[0].writer_address,
                    member.query_url,
                    count=max(100, int(_SENDS * scale)),
                    rate=_RATE,
                    topic=topic,
                )
                medians.append(float(np.median(times.visible)))
    return on_writer, on_replica


def _time_hand_overs(data: Path, scale: float) -> list[float]:
    """Return the longest wait of a send in seconds, for each of some hand-overs while one message at a time is sent."""
    waits: list[float] = []
    with contextlib.ExitStack() as stack:
        members = stack.enter_context(_group(data, 2, (WRITER,), min_in_sync=2))
        addresses = [member.writer_address for member in members]
        for shape, batches in _SHAPES.items():  # the next writer reads the log's tail
            append(addresses[0], _load(shape, batches, scale))
        producer = stack.enter_context(Producer("|".join(addresses), timeout_s=TIMEOUT_S))
        thread = stack.enter_context(ThreadPoolExecutor(1))
        for number in range(_HAND_OVERS):
            sending = thread.submit(_time_sends_for, producer, 3.0)
            time.sleep(1)
            ReplicationGroup(addresses[0]).hand_over("ba"[number % 2])
            waits.append(max(sending.result()))
    return waits


def _time_sends_for(producer: Producer, seconds: float) -> list[float]:
    end = time.perf_counter() + seconds
    times: list[float] = []
    while time.perf_counter() < end:
        times += _time_sends(producer, 1)
    return times


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


def _hand_over_row(waits: list[float]) -> Row:
    note = f"group of three, two in sync suffice, one message at a time; median of {_HAND_OVERS}"
    return Row(
        "replication_hand_over_s", "hand-over: longest wait of a send", statistics.median(waits), "s", "≤ 1", note
    )


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
    yield "replication_hand_over_s"


def _with_ratio(key: str, count: int) -> tuple[str, ...]:
    return (key, f"{key}_of_alone") if count else (key,)


BENCHMARKS = (Benchmark("replication", tuple(_keys()), _measure, "sync"),)
