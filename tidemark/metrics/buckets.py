"""Buckets: a histogram that one thread updates without a lock and any thread reads. Does not import Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from .table import BY_NAME


class Buckets:
    """Histogram of the table's row *name*. counts: per bucket, the last one is +Inf; total: sum of the values."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bounds = BY_NAME[name].bounds
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add the counts of other buckets of this name."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, counts, strict=True)]
        self.total += total
