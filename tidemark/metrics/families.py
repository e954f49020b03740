"""Conversion of the table's rows and numbers to prometheus_client's metric families."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from tidemark.version import program_version

from .buckets import Buckets
from .table import BY_NAME, MetricKind


def numbers(name: str, samples: Iterable[tuple[Sequence[str], float]]) -> Metric:
    """Return the counter or gauge *name*; samples: label values and the number."""
    row = BY_NAME[name]
    family: CounterMetricFamily | GaugeMetricFamily
    if row.kind is MetricKind.COUNTER:
        family = CounterMetricFamily(name, row.text, labels=row.labels)
    else:
        family = GaugeMetricFamily(name, row.text, labels=row.labels)
    for labels, value in samples:
        family.add_metric(labels, value)
    return family


def number(name: str, value: float) -> Metric:
    """Return the counter or gauge *name*, which has no labels."""
    return numbers(name, [((), value)])


def histogram(buckets: Buckets) -> Metric:
    """Return the current values of *buckets*."""
    ends = [*(repr(bound) for bound in buckets.bounds), "+Inf"]
    total = buckets.total
    cumulative = [float(count) for count in accumulate(list(buckets.counts))]
    return HistogramMetricFamily(
        buckets.name, BY_NAME[buckets.name].text, buckets=list(zip(ends, cumulative, strict=True)), sum_value=total
    )


class _About(Collector):
    """Collector of the program's version."""

    def __init__(self) -> None:
        self._version = program_version()

    def collect(self) -> Iterator[Metric]:
        yield numbers("tidemark_build_info", [((self._version,), 1.0)])


def make_registry() -> CollectorRegistry:
    """Return a registry with the metrics of every service: version, and the process's memory, CPU and open files."""
    disable_created_metrics()  # type: ignore[no-untyped-call]  # avoids one more series per counter, used by no format served here
    registry = CollectorRegistry()
    registry.register(_About())
    ProcessCollector(registry=registry)
    return registry
