"""Buckets: a histogram that one thread fills, without a lock, and any thread reads. Needs no Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from .table import BY_NAME


class Buckets:
    """The histogram of the table's row *name*. counts: by bucket, the last one +Inf; total: sum of what was seen."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.bounds = BY_NAME[name].bounds
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """See one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """See what other buckets of this name have seen."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, counts, strict=True)]
        self.total += total
