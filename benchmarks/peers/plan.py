"""What to run for a few goals: rounds of our benchmarks and of peers' workloads, none of them twice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.peers.goals import Goal
from benchmarks.peers.workloads import Workload


class OurRow(Protocol):
    """As benchmarks.report.Row."""

    @property
    def key(self) -> str: ...
    @property
    def value(self) -> float: ...
    @property
    def unit(self) -> str: ...
    @property
    def note(self) -> str: ...


class OurBenchmark(Protocol):
    """As in benchmarks.catalog.BENCHMARKS."""

    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def run(self) -> Callable[[Path, float], Sequence[OurRow]]: ...


@dataclass
class Round:
    """Goals that share runs. ours: names in the catalog."""

    goals: list[Goal] = field(default_factory=list)
    ours: list[str] = field(default_factory=list)
    workloads: list[Workload] = field(default_factory=list)

    @property
    def name(self) -> str:
        """For a progress bar."""
        return ", ".join(self.ours)


def pick(goals: Sequence[Goal], words: Sequence[str]) -> list[Goal]:
    """Goals that *words* name: a key, ours or the peers', or how one begins; without words all. KeyError: no such."""
    for word in words:
        if not any(_is_meant(word, goal) for goal in goals):
            raise KeyError(word)
    return [goal for goal in goals if not words or any(_is_meant(word, goal) for word in words)]


def _is_meant(word: str, goal: Goal) -> bool:
    return any(key == word or key.startswith(f"{word}_") for key in (goal.key, goal.peer_key))


def plan(goals: Sequence[Goal], benchmarks: Mapping[str, OurBenchmark], workloads: Sequence[Workload]) -> list[Round]:
    """Rounds in the order of *goals*; goals with a run in common share a round. KeyError: nobody gives a goal's row."""
    rounds: list[Round] = []
    for goal in goals:
        name = next((name for name, benchmark in benchmarks.items() if goal.key in benchmark.keys), None)
        theirs = [workload for workload in workloads if goal.peer_key in workload.keys]
        if name is None or goal.product not in {workload.product for workload in theirs}:
            raise KeyError(goal.key)
        shared = next((each for each in rounds if name in each.ours or _meet(each.workloads, theirs)), None)
        if shared is None:
            rounds.append(shared := Round())
        shared.goals.append(goal)
        shared.ours += [] if name in shared.ours else [name]
        shared.workloads += [workload for workload in theirs if workload not in shared.workloads]
    return rounds


def _meet(some: Sequence[Workload], others: Sequence[Workload]) -> bool:
    return any(workload in others for workload in some)
