"""Estimates the costs of several things from runs with known amounts and durations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np


def fit_costs(amounts: Sequence[Sequence[float]], seconds: Sequence[float]) -> list[float]:
    """Return the seconds of one of each thing, by least squares of the relative errors, none below 0.

    amounts  one row per run, one column per thing
    """
    scaled = np.array(amounts, np.float64) / np.array(seconds, np.float64)[:, np.newaxis]
    things = scaled.shape[1]
    best, least = np.zeros(things), np.inf
    for count in range(1, things + 1):
        for chosen in itertools.combinations(range(things), count):
            columns = scaled[:, list(chosen)]
            costs, *_ = np.linalg.lstsq(columns, np.ones(len(scaled)), rcond=None)
            error = float(np.square(columns @ costs - 1).sum())
            if (costs >= 0).all() and error < least:
                best, least = np.zeros(things), error
                best[list(chosen)] = costs
    return [float(cost) for cost in best]
