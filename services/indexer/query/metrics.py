"""Prometheus metrics, in a registry of their own."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from .facade import Facade

_SECONDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10, 30)


class Metrics:
    """Counts of what was answered, and the store's position when it is asked for."""

    def __init__(self, facade: Facade) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Position(facade))
        self.requests = Counter(
            "tidemark_query_requests", "Requests answered", ("path", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "tidemark_query_request_seconds",
            "Time to an answer's first byte, waiting included",
            ("path",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.messages = Counter("tidemark_query_messages", "Messages given out by pulls", registry=self.registry)
        self.bytes = Counter("tidemark_query_body_bytes", "Bytes of pull answers", ("format",), registry=self.registry)
        self.skipped = Counter("tidemark_query_skipped_records", "Damaged records met", registry=self.registry)

    def render(self) -> bytes:
        """The text format."""
        return generate_latest(self.registry)


class _Position(Collector):
    """Gauges that are read when they are asked for."""

    def __init__(self, facade: Facade) -> None:
        self._facade = facade

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        watermark = self._facade.store.watermark()
        age = time.time() - watermark.published_ms / 1000 if watermark.published_ms else 0.0
        for name, text, value in (
            (
                "tidemark_watermark_offset",
                "Physical offset below which messages are visible",
                watermark.physical_offset,
            ),
            ("tidemark_committed_offset", "Committed physical offset", watermark.committed_offset),
            ("tidemark_lag_bytes", "Committed and not yet visible", watermark.lag_bytes),
            ("tidemark_term", "The writer's term", watermark.term),
            ("tidemark_publication_age_seconds", "Since a mark moved last", age),
            ("tidemark_query_waiting_requests", "Requests that wait for messages", self._facade.watcher.waiting),
            ("tidemark_query_owns_consumer_offsets", "1 where this process writes them", self._facade.offsets.is_owner),
        ):
            yield GaugeMetricFamily(name, text, float(value))
        yield from self._of_groups()
        yield from self._of_tls()

    def _of_tls(self) -> Iterable[Metric]:
        tls = self._facade.tls
        if tls is None:
            return
        name = "tidemark_query_tls_reload_failed"
        yield GaugeMetricFamily(name, "1 while TLS files cannot be used, and old ones are", float(tls.reload_failed))
        name = "tidemark_query_tls_certificate_expires_seconds"
        yield GaugeMetricFamily(name, "When the certificate in use ends, Unix time", tls.current.leaf.expires_s)

    def _of_groups(self) -> Iterable[Metric]:
        leases = self._facade.groups.leases
        members = GaugeMetricFamily("tidemark_query_group_members", "Living members of a group", labels=("group",))
        generation = GaugeMetricFamily("tidemark_query_group_generation", "Of a group with members", labels=("group",))
        for group, state in leases.states().items():
            members.add_metric((group,), len(state.members))
            generation.add_metric((group,), state.generation)
        yield members
        yield generation
        for name, text, count in (
            ("tidemark_query_group_rebalances", "New generations of all groups", leases.rebalances),
            ("tidemark_query_fenced_commits", "Commits of members that are not the holder", leases.fenced_commits),
        ):
            yield CounterMetricFamily(name, text, count)


class MetricsMiddleware:
    """Counts requests by the route's path, never by what stands in it."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                path = getattr(scope.get("route"), "path", "none")
                self._metrics.requests.labels(path, str(message["status"])).inc()
                self._metrics.seconds.labels(path).observe(time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, count)
