"""A histogram without a lock."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.metrics.buckets import Buckets
from tidemark.metrics.families import histogram


class _Shown(Collector):
    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets

    def collect(self) -> list[Metric]:
        return [histogram(self._buckets)]


def test_histogram_buckets_are_cumulative_and_include_their_bound() -> None:
    """As in Prometheus, le is inclusive, and +Inf and _count have the total."""
    buckets = Buckets("tidemark_group_commit_batches")
    for value in (1, 2, 3, 5_000):
        buckets.observe(value)
    registry = CollectorRegistry()
    registry.register(_Shown(buckets))
    lines = generate_latest(registry).decode().splitlines()
    name = "tidemark_group_commit_batches"
    assert {
        f'{name}_bucket{{le="1.0"}} 1.0',
        f'{name}_bucket{{le="2.0"}} 2.0',
        f'{name}_bucket{{le="4.0"}} 3.0',
        f'{name}_bucket{{le="1024.0"}} 3.0',
        f'{name}_bucket{{le="+Inf"}} 4.0',
        f"{name}_count 4.0",
        f"{name}_sum 5006.0",
    } <= set(lines)


def test_buckets_of_another_process_are_added() -> None:
    """They are added bucket by bucket."""
    mine, theirs = Buckets("tidemark_fdatasync_seconds"), Buckets("tidemark_fdatasync_seconds")
    mine.observe(0.0001)
    theirs.observe(0.0001)
    theirs.observe(60)
    mine.add(theirs.counts, theirs.total)
    assert (mine.counts[0], mine.counts[-1], sum(mine.counts)) == (2, 1, 3)
    assert mine.total == pytest.approx(60.0002)
