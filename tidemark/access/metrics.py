"""AccessState: metrics of refused requests and of the access file."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.access.guard import Guard
from tidemark.metrics.families import number, numbers


class AccessState(Collector):
    """Collector of the metrics of *guard*."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard

    def collect(self) -> Iterator[Metric]:
        """Yield the counts of refusals and, if there is an access file, whether its last reload failed."""
        refused = self._guard.refused.copy()
        yield numbers("tidemark_refused_requests_total", [((reason,), count) for reason, count in refused.items()])
        if self._guard.access is not None:
            yield number("tidemark_access_reload_failed", self._guard.access.reload_failed)
