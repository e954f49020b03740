"""Runs rounds: Tidemark, each product, Tidemark, each product …; each run in its own folder, deleted afterwards."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress

from benchmarks.peers.compare import Pair
from benchmarks.peers.figures import OURS, Figure
from benchmarks.peers.plan import OurBenchmark, Round

_LAST_CHARACTERS = 2000


class Step(NamedTuple):
    """One run of one system."""

    system: str
    name: str
    run: Callable[[Path, float], Sequence[Figure]]


class Outcome(NamedTuple):
    """Pairs or failures by the round's name. A round with a failed run has no figures."""

    runs: dict[str, list[Pair]]
    failures: dict[str, str]


def run_rounds(
    rounds: Sequence[Round],
    benchmarks: Mapping[str, OurBenchmark],
    folder: Path,
    *,
    scale: float,
    pairs: int,
    progress: Progress,
    after_each: Callable[[Outcome], None] = lambda _: None,
) -> Outcome:
    """Run every round *pairs* times. An exception in a run ends its round, not the others.

    after_each  is called with the results so far after each round
    """
    outcome = Outcome({}, {})
    steps = {each.name: steps_of(each, benchmarks) for each in rounds}
    task = progress.add_task("", total=pairs * sum(map(len, steps.values())))
    done = 0
    for name, steps_of_pair in steps.items():
        try:
            outcome.runs[name] = [
                _run_pair(steps_of_pair, folder, scale, lambda text: progress.update(task, description=text, advance=1))
                for _ in range(pairs)
            ]
        except Exception as error:
            outcome.failures[name] = f"{type(error).__name__}: {str(error)[-_LAST_CHARACTERS:]}"
        done += pairs * len(steps_of_pair)
        progress.update(task, completed=done)
        after_each(outcome)
    return outcome


def steps_of(a_round: Round, benchmarks: Mapping[str, OurBenchmark]) -> list[Step]:
    """Return the runs of one pair, in order."""
    ours = [Step(OURS, f"Tidemark: {name}", _ours(benchmarks[name])) for name in a_round.ours]
    theirs = [
        Step(workload.product.name, f"{workload.product.title}: {', '.join(workload.keys)}", workload.run)
        for workload in a_round.workloads
    ]
    return ours + theirs


def _ours(benchmark: OurBenchmark) -> Callable[[Path, float], Sequence[Figure]]:
    def run(folder: Path, scale: float) -> list[Figure]:
        return [Figure(row.key, row.value, row.unit, row.note) for row in benchmark.run(folder, scale)]

    return run


def _run_pair(steps: Sequence[Step], folder: Path, scale: float, begins: Callable[[str], None]) -> Pair:
    pair: dict[str, dict[str, Figure]] = defaultdict(dict)
    for step in steps:
        begins(step.name)
        with tempfile.TemporaryDirectory(prefix=f"{step.system}-", dir=folder) as own:
            pair[step.system] |= {figure.key: figure for figure in step.run(Path(own), scale)}
    return dict(pair)
