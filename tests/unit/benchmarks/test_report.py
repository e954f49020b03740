"""Rows and plots of measured values."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.report import latency_plots, percentile_rows, throughput_line


def test_percentiles_have_a_row_each_with_a_stable_key() -> None:
    """The values are 1 to 1,000 ms."""
    rows = percentile_rows("visible_sync", "append→visible", np.arange(1.0, 1001.0), targets={"p99": "≤ 7"})
    assert [row.key for row in rows] == [f"visible_sync_{end}" for end in ("p50", "p90", "p99", "p999", "max")]
    assert [row.value for row in rows] == pytest.approx([500.5, 900.1, 990.01, 999.001, 1000.0])
    assert [row.target for row in rows] == ["", "", "≤ 7", "", ""]


@pytest.mark.parametrize("values", [np.array([]), np.array([1.0, np.nan])])
def test_a_missing_latency_is_an_error(values: np.ndarray) -> None:
    """An undelivered message must not vanish from the percentiles."""
    with pytest.raises(ValueError, match="missing"):
        percentile_rows("visible", "", values)


def test_a_histogram_holds_every_message() -> None:
    """The least and the greatest are included."""
    values = np.array([0.0, 0.4, 3.0, 3.0, 1200.0])
    histogram, curve = latency_plots("latency", {"visible": values})
    assert sum(histogram.lines["visible"].y) == len(values)
    assert len(histogram.lines["visible"].x) == len(histogram.lines["visible"].y) + 1
    assert curve.lines["visible"].y[0] == pytest.approx(0.0)
    assert max(curve.lines["visible"].y) <= 1200.0


def test_throughput_counts_the_messages_of_each_bin() -> None:
    """There are ten a second for two seconds, in bins of half a second."""
    times = 100 + np.arange(21) / 10
    line = throughput_line(times, np.ones(21), bin_s=0.5)
    assert line.x == pytest.approx([0.5, 1.0, 1.5, 2.0])
    assert sum(line.y) * 0.5 == pytest.approx(21)  # the last bin includes its end
    assert line.y[0] == pytest.approx(10)
