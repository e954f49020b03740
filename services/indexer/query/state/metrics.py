"""Metrics of the query service: counts of its answers, and the store's position at each scrape."""

from __future__ import annotations

import functools
import math
import time
from collections import Counter as Tally
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidemark.access.guard import Guard
from tidemark.access.metrics import AccessState
from tidemark.index.ledger import read_ledger
from tidemark.metrics.families import make_registry, number, numbers
from tidemark.metrics.table import BY_NAME
from tidemark.metrics.tls_state import TlsState
from tidemark.metrics.topic_counts import TopicCounts
from tidemark.read.lookup.offset_by_time import store_time
from tidemark.read.store_reader import StoreReader
from tidemark.tls.reloading import Reloading

from ..groups.consumer_offsets import ConsumerOffsets
from ..groups.group_lag import GroupLag
from ..groups.member_table import MemberTable
from .watermark_watcher import WatermarkWatcher


class Metrics:
    """Counts of answers, and gauges that are read at each scrape. max_topics: most topics with series of their own."""

    def __init__(
        self,
        *,
        store: StoreReader,
        watcher: WatermarkWatcher,
        offsets: ConsumerOffsets,
        leases: MemberTable,
        guard: Guard,
        tls: Reloading | None,
        max_topics: int,
    ) -> None:
        self.registry = make_registry()
        self.requests = _counter("tidemark_query_requests_total", self.registry)
        self.body_bytes = functools.cache(_counter("tidemark_query_body_bytes_total", self.registry).labels)
        self.skipped = _counter("tidemark_query_skipped_records_total", self.registry)
        row = BY_NAME["tidemark_query_request_seconds"]
        self.seconds = Histogram(row.name, row.text, row.labels, buckets=row.bounds, registry=self.registry)
        self.answers = functools.cache(self._answers)  # cached, because `labels` takes as long as counting
        self.given = TopicCounts(
            limit=max_topics,
            messages="rocketmq_messages_out_total",
            size="rocketmq_throughput_out_total",
        )
        self.registry.register(_Given(self.given))
        self.registry.register(_Position(store, watcher, offsets))
        self.registry.register(_Groups(leases, GroupLag(store, offsets, limit=max_topics)))
        self.registry.register(AccessState(guard))
        if tls is not None:
            self.registry.register(TlsState(tls))

    def _answers(self, path: str, status: int) -> tuple[Counter, Histogram]:
        return self.requests.labels(path, str(status)), self.seconds.labels(path)

    def count_answer(self, path: str, status: int, seconds: float) -> None:
        """Count an answer whose head is sent after *seconds*. path: the route's template."""
        requests, histogram = self.answers(path, status)
        requests.inc()
        histogram.observe(seconds)

    def render(self) -> bytes:
        """Return the metrics in text format. Reads files, so do not call it on the event loop."""
        return generate_latest(self.registry)


def _counter(name: str, registry: CollectorRegistry) -> Counter:
    row = BY_NAME[name]
    return Counter(row.name, row.text, row.labels, registry=registry)


class _Given(Collector):
    """Messages and bytes that pulls returned, by topic."""

    def __init__(self, given: TopicCounts) -> None:
        self._given = given

    def collect(self) -> Iterator[Metric]:
        yield from self._given.families()


class _Position(Collector):
    """The store's positions and damage."""

    def __init__(self, store: StoreReader, watcher: WatermarkWatcher, offsets: ConsumerOffsets) -> None:
        self._store = store
        self._watcher = watcher
        self._offsets = offsets
        self._damages = _Damages(store.paths.indexer)

    def collect(self) -> Iterator[Metric]:
        store, now = self._store, time.time()
        watermark = store.watermark()
        marks = store.watermarks.marks
        published = max(0.0, now - watermark.published_ms / 1000) if watermark.published_ms else 0.0
        alive = max(0.0, now - marks.alive_ms / 1000) if marks is not None and marks.alive_ms else math.inf
        first_ms = store_time(store.log, store.log_min)
        yield number("tidemark_watermark_bytes", watermark.physical_offset)
        yield number("tidemark_committed_bytes", watermark.committed_offset)
        yield number("rocketmq_storage_dispatch_behind_bytes", watermark.lag_bytes)
        yield number("tidemark_term", watermark.term)
        yield number("tidemark_publication_age_seconds", published)
        yield number("tidemark_pipeline_alive_age_seconds", alive)
        yield number(
            "rocketmq_storage_message_reserve_time", max(0, round(now * 1000) - first_ms) if first_ms > 0 else 0
        )
        yield self._damages.family()
        yield number("tidemark_query_waiting_requests", self._watcher.waiting)
        yield number("tidemark_query_followers", self._watcher.followers)
        yield number("tidemark_query_owns_consumer_offsets", self._offsets.is_owner)


class _Damages:
    """Counts of the ledger's places by reason, read again when a file of the ledger has grown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[str, int] = {}
        self._by_reason: Tally[str] = Tally()

    def family(self) -> Metric:
        """Return the gauge. It always has the reason NONE, so that the series exists without damage."""
        sizes = {path.name: path.stat().st_size for path in self._folder.glob("ledger-*.jsonl")}
        if sizes != self._sizes:
            self._by_reason = Tally(entry["reason"] for entry in read_ledger(self._folder))
            self._sizes = sizes
        found = {"NONE": 0, **self._by_reason}
        return numbers("tidemark_damaged_places", (((reason,), places) for reason, places in sorted(found.items())))


class _Groups(Collector):
    """Members of groups, at most `query_max_groups` series, and the groups' lag."""

    def __init__(self, leases: MemberTable, lag: GroupLag) -> None:
        self._leases = leases
        self._lag = lag

    def collect(self) -> Iterator[Metric]:
        states = self._leases.states().items()
        yield numbers("tidemark_query_group_members", (((group,), len(state.members)) for group, state in states))
        yield numbers("tidemark_query_group_generation", (((group,), state.generation) for group, state in states))
        yield number("tidemark_query_group_rebalances_total", self._leases.rebalances)
        yield number("tidemark_query_fenced_commits_total", self._leases.fenced_commits)
        yield from self._lag.families()


class MetricsMiddleware:
    """Counts requests, labelled with the route's template and never with the concrete path."""

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
                self._metrics.count_answer(path, message["status"], time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, count)
