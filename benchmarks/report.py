"""The result of a benchmark: rows (one figure each) and plots, as plain data from which JSON and HTML are made."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p999": 99.9, "max": 100.0}  # by the suffix of a row's key
_BINS = 60


class Row(NamedTuple):
    """One figure. key: stable, for programs; target: the project's goal, "" for none; note: how it was measured."""

    key: str
    name: str
    value: float
    unit: str
    target: str = ""
    note: str = ""


class PlotKind(enum.StrEnum):
    """The style of a plot's lines."""

    LINES = "lines"  # over time, from 0 on both axes
    GROWTH = "growth"  # both axes logarithmic, with markers
    HISTOGRAM = "histogram"  # steps over logarithmic bins
    PERCENTILES = "percentiles"  # over 1 / (1 - p), logarithmic


class Line(NamedTuple):
    """The points of one line. For a histogram, x has one more value, because it holds the edges of the bins."""

    x: list[float]
    y: list[float]


class Plot(NamedTuple):
    """One plot, with its lines by name."""

    title: str
    x_label: str
    y_label: str
    kind: PlotKind
    lines: dict[str, Line]


class Result(NamedTuple):
    """The measurements of one benchmark."""

    rows: list[Row]
    plots: list[Plot]


def percentile_rows(
    key: str,
    name: str,
    values_ms: NDArray[np.float64],
    *,
    targets: Mapping[str, str] | None = None,
    note: str = "",
    percentiles: Sequence[str] = tuple(PERCENTILES),
) -> list[Row]:
    """Return the rows <key>_p50 and so on, in ms. targets: by "p50" and so on.

    Raises ValueError if latencies are missing.
    """
    if not len(values_ms) or not np.isfinite(values_ms).all():
        raise ValueError(
            f"{key}: {np.count_nonzero(~np.isfinite(values_ms))} of {len(values_ms)} latencies are missing"
        )
    return [
        Row(
            f"{key}_{end}",
            f"{name} {end.replace('p999', 'p99.9')}",
            float(np.percentile(values_ms, PERCENTILES[end])),
            "ms",
            (targets or {}).get(end, ""),
            note,
        )
        for end in percentiles
    ]


def latency_plots(title: str, values_ms: Mapping[str, NDArray[np.float64]]) -> list[Plot]:
    """Return a histogram and a curve of percentiles of latencies in ms, by the lines' names."""
    everything = np.concatenate(list(values_ms.values()))
    edges = np.geomspace(max(everything.min(), 1e-3), max(everything.max(), 2e-3) * 1.0001, _BINS + 1)
    bins = {
        name: Line(edges.tolist(), np.histogram(np.maximum(values, edges[0]), edges)[0].astype(float).tolist())
        for name, values in values_ms.items()
    }
    curves = {name: _percentile_line(values) for name, values in values_ms.items()}
    return [
        Plot(f"{title}: distribution", "ms", "messages", PlotKind.HISTOGRAM, bins),
        Plot(f"{title}: percentiles", "percentile", "ms", PlotKind.PERCENTILES, curves),
    ]


def _percentile_line(values_ms: NDArray[np.float64]) -> Line:
    """Return percentiles over 1 / (1 - p), up to the number of values: 10 is the 90th percentile, 100 the 99th."""
    x = np.geomspace(1, max(2, len(values_ms)), 200)
    return Line(x.tolist(), np.percentile(values_ms, (1 - 1 / x) * 100).tolist())


def throughput_line(times_s: NDArray[np.float64], amounts: NDArray[np.float64], *, bin_s: float = 0.25) -> Line:
    """Return amounts per second in bins of time, from the first event; the last, incomplete bin is left out."""
    start, end = float(times_s.min()), float(times_s.max())
    bins = max(1, int((end - start) / bin_s))
    edges = start + bin_s * np.arange(bins + 1)
    sums, _ = np.histogram(times_s, edges, weights=amounts)
    return Line((edges[1:] - start).tolist(), (sums / bin_s).tolist())
