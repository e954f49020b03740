"""Ratios of a goal's figures, pair by pair. Knows no process and no clock."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.peers.figures import Figure
from benchmarks.peers.goals import Better, Goal

LEAST_PAIRS = 3  # fewer give ratios, and no verdict
OURS = "tidemark"  # beside the names of the peers' products
Pair = Mapping[str, Mapping[str, Figure]]  # system → key → figure, of runs that followed each other


class Spread(NamedTuple):
    """Of a few numbers."""

    median: float
    least: float
    greatest: float


class Comparison(NamedTuple):
    """What came of a goal. figures: medians by system; ratio: ours / the goal's peer's; met: None: not decided."""

    goal: Goal
    unit: str
    pairs: int
    figures: Mapping[str, float]
    ratio: Spread
    met: bool | None


def spread(values: Sequence[float]) -> Spread:
    """Median, least, greatest; ValueError for none."""
    if not values:
        raise ValueError("no values")
    return Spread(statistics.median(values), min(values), max(values))


def compare(goal: Goal, pairs: Sequence[Pair]) -> Comparison:
    """*goal* over all *pairs*. KeyError when a figure is missing, ValueError when units differ or a figure is not > 0.

    The ratio is taken within each pair, so that a machine that is slow for a while is slow for both.
    """
    figures = {system: [pair[system][_key(goal, system)] for pair in pairs] for system in _systems(goal, pairs)}
    units = {figure.unit for runs in figures.values() for figure in runs}
    if len(units) != 1:
        raise ValueError(f"{goal.key}: units {', '.join(sorted(units)) or 'none'}")
    for system, runs in figures.items():
        if not all(figure.value > 0 for figure in runs):
            raise ValueError(f"{goal.key}: a figure of {system} is not above 0")
    ours, theirs = figures[OURS], figures[goal.product.name]
    ratio = spread([mine.value / other.value for mine, other in zip(ours, theirs, strict=True)])
    medians = {system: statistics.median(figure.value for figure in runs) for system, runs in figures.items()}
    return Comparison(
        goal,
        units.pop(),
        len(pairs),
        medians,
        ratio,
        _is_met(goal, ratio.median) if len(pairs) >= LEAST_PAIRS else None,
    )


def _key(goal: Goal, system: str) -> str:
    return goal.key if system == OURS else goal.peer_key


def _systems(goal: Goal, pairs: Sequence[Pair]) -> list[str]:
    """Ours, the goal's peer, and every other one that has the figure."""
    others = {system for pair in pairs for system, figures in pair.items() if goal.peer_key in figures}
    return [OURS, goal.product.name, *sorted(others - {OURS, goal.product.name})]


def _is_met(goal: Goal, ratio: float) -> bool | None:
    if goal.factor is None:
        return None
    return ratio >= goal.factor if goal.better is Better.HIGHER else ratio <= goal.factor
