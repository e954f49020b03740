"""Made-up figures, pairs and benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.compare import Pair
from benchmarks.peers.figures import OURS, Figure
from benchmarks.peers.goals import Better, Goal
from benchmarks.peers.toolchain import KAFKA, ROCKETMQ
from benchmarks.peers.workloads import Workload


class Row(NamedTuple):
    key: str
    value: float
    unit: str = "msg/s"
    note: str = ""


@dataclass(frozen=True)
class OurStandIn:
    keys: Sequence[str]
    run: Callable[[Path, float], Sequence[Row]]


def goal(
    factor: float | None = 2.0, better: Better = Better.HIGHER, *, key: str = "append", peer_key: str = ""
) -> Goal:
    return Goal(key, peer_key or key, ROCKETMQ, better, factor)


def pair(ours: float, rocketmq: float, kafka: float | None = None, *, key: str = "append", unit: str = "msg/s") -> Pair:
    figures = {OURS: ours, ROCKETMQ.name: rocketmq, KAFKA.name: kafka}
    return {system: {key: Figure(key, value, unit)} for system, value in figures.items() if value is not None}


def workload(*keys: str, value: float = 1.0) -> Workload:
    def run(_: Path, __: float) -> list[Figure]:
        return [Figure(key, value, "msg/s") for key in keys]

    return Workload(ROCKETMQ, keys, run)


def benchmark(*keys: str, value: float = 1.0) -> OurStandIn:
    return OurStandIn(keys, lambda _, __: [Row(key, value) for key in keys])
