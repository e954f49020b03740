"""Costs that are fitted to measured runs."""

from __future__ import annotations

import pytest

from benchmarks.scale.cost_fit import fit_costs


def test_fitted_costs_equal_the_generating_costs() -> None:
    """Three costs, three runs."""
    amounts = [(1000, 1000, 2e5), (10, 10_000, 2e6), (10, 100, 1e8)]
    costs = (1e-4, 1e-6, 3e-9)
    seconds = [sum(amount * cost for amount, cost in zip(run, costs, strict=True)) for run in amounts]
    assert fit_costs(amounts, seconds) == pytest.approx(costs)


def test_no_cost_is_negative() -> None:
    """If noise makes the fit negative, the cost is zero."""
    assert fit_costs([(1, 10), (1, 20), (1, 40)], [1.0, 0.95, 0.9]) == pytest.approx([0.946, 0], abs=0.01)
