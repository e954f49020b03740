"""The longest wait of a program that sends one message at a time, while its group changes the writer."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.benchmark import Benchmark
from benchmarks.producers import TIMEOUT_S, Load, append
from benchmarks.replication_group import TOPIC, addresses, group, time_send, until_in_sync
from benchmarks.report import Result, Row
from benchmarks.stores import passing_store
from tests.etcd import Etcd
from tidemark.client import Producer
from tidemark.client.wire.group_admin import ReplicationGroup
from tidemark.local.local_stack import WRITER, LocalStack

_SHAPES = {(100, 1024): 2_000, (1_000, 100): 800}  # batches of a producer; the next writer reads the log's tail
_HAND_OVERS, _KILLS = 6, 3
_PAUSE_S = 1.0  # of undisturbed sends before and after
_NOTE = "group of three, two in sync suffice"


def _measure(folder: Path, scale: float) -> Result:
    with (
        passing_store(folder / "failover") as data,
        contextlib.closing(Etcd(data / "etcd")) as etcd,
        group(data, 2, (WRITER,), min_in_sync=2, group_store=etcd.address) as members,
        Producer(addresses(members), timeout_s=TIMEOUT_S) as producer,
    ):
        for shape, batches in _SHAPES.items():
            append(addresses(members), Load(TOPIC, *shape, batches=max(40, int(batches * scale))))
        hand_overs = [_longest_wait(producer, members, _hand_over) for _ in range(_HAND_OVERS)]
        kills = [_longest_wait(producer, members, _kill) for _ in range(_KILLS)]
    return Result([_hand_over_row(hand_overs), _kill_row(kills)], [])


Act = Callable[[Mapping[str, LocalStack], str], None]
"""Changes the writer, which is given with its members."""


def _longest_wait(producer: Producer, members: Mapping[str, LocalStack], change: Act) -> float:
    """Return the longest wait of a send in seconds, while one after the other is sent and *change* is called."""
    writer = until_in_sync(members)
    stopping = threading.Event()
    with ThreadPoolExecutor(1) as thread:
        sending = thread.submit(_time_sends, producer, stopping)
        try:
            time.sleep(_PAUSE_S)
            change(members, writer)
            time.sleep(_PAUSE_S)
        finally:
            stopping.set()
        return max(sending.result())


def _time_sends(producer: Producer, stopping: threading.Event) -> list[float]:
    times: list[float] = []
    while not stopping.is_set():
        times.append(time_send(producer))
    return times


def _hand_over(members: Mapping[str, LocalStack], writer: str) -> None:
    target = next(name for name in members if name != writer)
    ReplicationGroup(members[writer].writer_address).hand_over(target)


def _kill(members: Mapping[str, LocalStack], writer: str) -> None:
    """Kill the writer; start it again once there is another one."""
    members[writer].services[WRITER].kill()
    until_in_sync({name: member for name, member in members.items() if name != writer})
    time.sleep(_PAUSE_S)
    members[writer].start_service(WRITER)


def _hand_over_row(waits: list[float]) -> Row:
    note = f"{_NOTE}; median of {_HAND_OVERS}"
    return Row(
        "replication_hand_over_s", "hand-over: longest wait of a send", statistics.median(waits), "s", "≤ 1", note
    )


def _kill_row(waits: list[float]) -> Row:
    note = f"{_NOTE}; lease of 10 s; median of {_KILLS}"
    name = "kill -9 of the writer: longest wait of a send"
    return Row("replication_failover_s", name, statistics.median(waits), "s", "≤ 13", note)


BENCHMARKS = (Benchmark("failover", ("replication_hand_over_s", "replication_failover_s"), _measure, "sync"),)
