"""Plans the runs for some goals: rounds of Tidemark's benchmarks and the other products' workloads, without repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.peers.figures import NO_PEERS
from benchmarks.peers.goals import Goal
from benchmarks.peers.python.systems import BEST
from benchmarks.peers.workloads import Workload


class OurRow(Protocol):
    """The part of benchmarks.report.Row that the comparison uses."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def note(self) -> str: ...


class OurBenchmark(Protocol):
    """The part of a benchmark in benchmarks.catalog.BENCHMARKS that the comparison uses."""

    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def run(self) -> Callable[[Path, float], Sequence[OurRow]]: ...


@dataclass
class Round:
    """Goals that share runs. ours: names of Tidemark's benchmarks in the catalog."""

    goals: list[Goal] = field(default_factory=list)
    ours: list[str] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name for the progress bar."""
        return ", ".join(self.ours)


def pick(goals: Sequence[Goal], words: Sequence[str]) -> list[Goal]:
    """Return the goals with a key that is, or begins with, one of *words*; all without words. Raises KeyError."""
    for word in words:
        if not any(_is_meant(word, goal) for goal in goals):
            raise KeyError(word)
    return [goal for goal in goals if not words or any(_is_meant(word, goal) for word in words)]


def _is_meant(word: str, goal: Goal) -> bool:
    return any(key == word or key.startswith(f"{word}_") for key in (goal.key, goal.peer_key))


def plan(goals: Sequence[Goal], benchmarks: Mapping[str, OurBenchmark], workloads: Sequence[Workload]) -> list[Round]:
    """Return rounds in the order of *goals*. Goals with a common run share a round.

    Raises KeyError for a goal whose row is in no benchmark or workload.
    """
    rounds: list[Round] = []
    for goal in goals:
        name = next((name for name, benchmark in benchmarks.items() if goal.key in benchmark.keys), None)
        theirs = [workload for workload in workloads if goal.peer_key in workload.keys]
        if name is None or not has_peer(goal, theirs):
            raise KeyError(goal.key)
        shared = next((each for each in rounds if name in each.ours or _meet(each.workloads, theirs)), None)
        if shared is None:
            rounds.append(shared := Round())
        shared.goals.append(goal)
        shared.ours += [] if name in shared.ours else [name]
        shared.workloads += [workload for workload in theirs if workload not in shared.workloads]
    return rounds


def has_peer(goal: Goal, workloads: Sequence[Workload]) -> bool:
    """Return True if *workloads* have the system with which *goal* compares."""
    names = {workload.product.name for workload in workloads if goal.peer_key in workload.keys}
    return bool(names.difference(NO_PEERS)) if goal.product is BEST else goal.product.name in names


def _meet(some: Sequence[Workload], others: Sequence[Workload]) -> bool:
    return any(workload in others for workload in some)
