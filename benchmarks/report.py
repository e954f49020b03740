"""What a benchmark says: rows of name, value, unit, and what to aim by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PERCENTILES = (50.0, 90.0, 99.0, 99.9, 100.0)


class Row(NamedTuple):
    """One figure. target: what the project aims at, "" for none; note: how it was measured."""

    name: str
    value: float
    unit: str
    target: str = ""
    note: str = ""


def percentile_rows(
    name: str, values_ms: NDArray[np.float64], targets: dict[float, str] | None = None, note: str = ""
) -> list[Row]:
    """p50, p90, p99, p99.9 and max of latencies in ms."""
    rows: list[Row] = []
    for percentile in PERCENTILES:
        label = "max" if percentile == 100.0 else f"p{percentile:g}"
        value = float(np.percentile(values_ms, percentile))
        rows.append(Row(f"{name} {label}", value, "ms", (targets or {}).get(percentile, ""), "" if rows else note))
    return rows
