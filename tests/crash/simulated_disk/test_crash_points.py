"""A crash anywhere in a workload, and a power cut that loses any part of the unsynced data: the promises hold."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .explore import SEED, Run, explore
from .states import Counts
from .workloads import STEPS

pytestmark = pytest.mark.crash

SECTOR = 512
MODES = ("sync", "async")
WORKLOADS: tuple[tuple[str, ...], ...] = (
    (),
    ("append",),
    ("append three", "append"),
    ("append group",),
    ("append inner", "append three"),
    ("roll", "roll", "append"),
    ("append", "checkpoint", "append three"),
    ("create topic", "append", "delete topic"),
    ("append three", "delete topic", "append"),
    ("roll", "restart", "append"),
    ("put offset", "put offset"),
)
BUILDING: tuple[tuple[str, ...], ...] = (
    ("build",),
    ("build", "append", "build"),
    ("append long", "build"),
    ("append long", "build", "append long"),
    ("build", "roll", "build"),
    ("build", "append inner", "build"),
    ("build", "delete topic", "append"),
    ("delete topic", "append", "build"),
    ("build", "restart", "build"),
    ("roll", "build", "expire"),
)
QUICK = (
    Run(("append three", "append"), "sync", most=60, again=1),
    Run(("append three", "roll"), "async", most=60, again=1),
    Run(("build", "append", "build"), "sync", SECTOR, most=60, again=1),
)
RANDOM = int(os.environ.get("CRASH_WORKLOADS", "8"))


def _random_runs() -> Iterator[Run]:
    source = random.Random(SEED)
    for _ in range(RANDOM):
        steps = tuple(source.choice(sorted(STEPS)) for _ in range(3))
        yield Run(steps, source.choice(MODES), SECTOR if "build" in steps else 4096, again=2)


def _fixed_runs() -> Iterator[Run]:
    for mode, steps in itertools.product(MODES, WORKLOADS):
        yield Run(steps, mode, again=1)
    for mode, steps in itertools.product(MODES, BUILDING):
        yield Run(steps, mode, SECTOR, again=2)


@pytest.mark.parametrize("run", QUICK, ids=str)
def test_promises_hold_after_a_crash_in_a_few_workloads(run: Run, folder: Path) -> None:
    """The quick part checks a seeded selection of states."""
    counts = explore(run, folder)
    assert counts.opened >= run.most


@pytest.mark.exhaustive
@pytest.mark.parametrize("run", [*_fixed_runs(), *_random_runs()], ids=str)
def test_promises_hold_after_a_crash_at_any_step(run: Run, folder: Path, tell: Callable[[str], None]) -> None:
    """Workloads have up to three operations; some are given, some random."""
    counts = explore(run, folder)
    tell(f"{run}: {counts}")
    _total.append(counts)


_total: list[Counts] = []


@pytest.mark.exhaustive
def test_the_total_of_all_crash_points_is_reported(tell: Callable[[str], None]) -> None:
    """Report both counts over all workloads of this run."""
    total = sum_of(_total)
    tell(f"crash points together: {total}")
    assert total.opened > 0


def sum_of(counts: list[Counts]) -> Counts:
    total = Counts()
    for one in counts:
        total += one
    return total
