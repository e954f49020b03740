"""Computes the ratios of a goal's figures, pair by pair, as pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.peers.figures import Figure
from benchmarks.peers.goals import Better, Goal

LEAST_PAIRS = 3  # fewer give ratios without a verdict
OURS = "tidemark"  # name of the system, like the names of the products
Pair = Mapping[str, Mapping[str, Figure]]  # system → key → figure, of runs that followed each other


class Spread(NamedTuple):
    """The spread of a few numbers."""

    median: float
    least: float
    greatest: float


class Comparison(NamedTuple):
    """The result for a goal. figures: medians by system; ratio: Tidemark's / the product's; met: None if undecided."""

    goal: Goal
    unit: str
    pairs: int
    figures: Mapping[str, float]
    ratio: Spread
    met: bool | None


def spread(values: Sequence[float]) -> Spread:
    """Return median, least and greatest value. Raises ValueError without values."""
    if not values:
        raise ValueError("expected at least one value")
    return Spread(statistics.median(values), min(values), max(values))


def compare(goal: Goal, pairs: Sequence[Pair]) -> Comparison:
    """Compare the figures of *goal* over all *pairs*.

    The ratio is computed within each pair, so that a temporarily slow machine affects both systems.
    Raises KeyError if a figure is missing, ValueError if units differ or a figure is not above 0.
    """
    figures = {system: [pair[system][_key(goal, system)] for pair in pairs] for system in _systems(goal, pairs)}
    units = {figure.unit for runs in figures.values() for figure in runs}
    if len(units) != 1:
        raise ValueError(f"{goal.key}: expected figures of one unit, got {', '.join(sorted(units)) or 'none'}")
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
    """Return Tidemark, the goal's product, and every other system that has the figure."""
    others = {system for pair in pairs for system, figures in pair.items() if goal.peer_key in figures}
    return [OURS, goal.product.name, *sorted(others - {OURS, goal.product.name})]


def _is_met(goal: Goal, ratio: float) -> bool | None:
    if goal.factor is None:
        return None
    return ratio >= goal.factor if goal.better is Better.HIGHER else ratio <= goal.factor
