"""Computes the ratios of a goal's figures, pair by pair, as pure functions."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.peers.figures import NO_PEERS, OURS, Figure
from benchmarks.peers.goals import Better, Goal
from benchmarks.peers.python.systems import BEST

LEAST_PAIRS = 3  # fewer give ratios without a verdict
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
    ratio = spread([pair[OURS][goal.key].value / _peer_value(goal, pair) for pair in pairs])
    medians = {system: statistics.median(figure.value for figure in runs) for system, runs in figures.items()}
    return Comparison(
        goal,
        units.pop(),
        len(pairs),
        medians,
        ratio,
        _is_met(goal, ratio.median, medians[OURS]) if len(pairs) >= LEAST_PAIRS else None,
    )


def _peer_value(goal: Goal, pair: Pair) -> float:
    """Return the figure with which Tidemark's is compared."""
    if goal.product is not BEST:
        return pair[goal.product.name][goal.peer_key].value
    others = [
        figures[goal.peer_key].value
        for system, figures in pair.items()
        if system not in NO_PEERS and goal.peer_key in figures
    ]
    return max(others) if goal.better is Better.HIGHER else min(others)


def _key(goal: Goal, system: str) -> str:
    return goal.key if system == OURS else goal.peer_key


def _systems(goal: Goal, pairs: Sequence[Pair]) -> list[str]:
    """Return Tidemark, the goal's product, and every other system that has the figure."""
    others = {system for pair in pairs for system, figures in pair.items() if goal.peer_key in figures}
    first = [OURS] if goal.product is BEST else [OURS, goal.product.name]
    return [*first, *sorted(others - set(first))]


def _is_met(goal: Goal, ratio: float, ours: float) -> bool | None:
    value, bound = (ours, goal.limit.value) if goal.limit is not None else (ratio, goal.factor)
    if bound is None:
        return None
    return value >= bound if goal.better is Better.HIGHER else value <= bound
