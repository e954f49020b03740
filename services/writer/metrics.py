"""WriterMetrics: collects the writer's metrics at each scrape."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.metrics.families import histogram, number, numbers

from .log.append_counts import AppendCounts
from .log.commit_log import CommitLog
from .log.open_store import OpenStore
from .remoting.composition import WriterRemoting
from .retention.retention_thread import Retention
from .submission.append_times import AppendTimes


class WriterMetrics(Collector):
    """A collector that the metrics listener's threads call. It only reads single numbers, so it needs no lock."""

    def __init__(
        self,
        store: OpenStore,
        commit_log: CommitLog,
        retention: Retention,
        counts: AppendCounts,
        times: AppendTimes,
        remoting: WriterRemoting | None = None,
    ) -> None:
        self._store = store
        self._commit_log = commit_log
        self._retention = retention
        self._counts = counts
        self._times = times
        self._remoting = remoting

    def collect(self) -> Iterator[Metric]:
        log = self._commit_log
        flushed = log.flushed_offset  # read first, so that it is at most the written offset
        yield number("rocketmq_storage_flush_behind_bytes", max(0, log.written_offset - flushed))
        yield number("rocketmq_storage_size", len(self._store.segments.log.starts) * log.segment_size)
        yield numbers("rocketmq_processor_watermark", [(("send",), log.waiting)])
        yield number("tidemark_in_flight_bytes", log.in_flight_bytes)
        yield number("tidemark_disk_free_bytes", self._store.free_bytes(self._store.paths.root))
        yield number("tidemark_retention_deleted_files_total", self._retention.deleted_files)
        yield number("tidemark_retention_deleted_bytes_total", self._retention.deleted_bytes)
        yield histogram(self._times.seconds)
        for buckets in (log.groups.seconds, log.groups.batches, log.groups.bytes):
            yield histogram(buckets)
        yield from self._counts.families()
        if self._remoting is not None:
            yield from self._remoting.families()
