"""Percentiles and rates of `bench`."""

from __future__ import annotations

import random
from array import array

import pytest

from tidemark.cli.bench.measurements import Latencies, Rate


def test_percentiles_are_measured_values_by_nearest_rank() -> None:
    """They do not depend on the order of the samples."""
    seconds = [number / 1000 for number in range(1, 2001)]
    random.Random(1).shuffle(seconds)
    found = Latencies.of(array("d", seconds))
    assert found.samples == 2000
    assert found[1:] == pytest.approx((1000, 1980, 1998, 2000))


def test_one_sample_is_every_percentile() -> None:
    """Few samples have no separate tail."""
    assert tuple(Latencies.of(array("d", [0.25]))) == (1, 250, 250, 250, 250)


def test_a_rate_counts_bodies() -> None:
    """The bytes are those of the bodies, without keys and properties."""
    assert tuple(Rate.of(100, 2.0, size_bytes=1000)) == (100, 2.0, 50.0, 50_000.0)
