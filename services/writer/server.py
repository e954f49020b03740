"""WriterServer: serves an open store over gRPC, with health, reflection, and the stop after a signal or a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import StoreError
from tidemark.format.host import encode_host
from tidemark.format.tags import MAX_DELAY_LEVEL, SCHEDULE_TOPIC
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.multi_path_mapped_file_queue import open_log
from tidemark.tls.reloading import Reloading
from tidemark.tracing.opening import open_tracing
from tidemark.v1 import commit_log_pb2, commit_log_pb2_grpc, topics_pb2, topics_pb2_grpc

from .admission.admission import Admission, Limits
from .batch.batch import QueueKey
from .batch.record_encoder import Encoder, warm_up
from .config import WriterSettings
from .dedup.recent_batches import Window
from .delay.delivery import Delivery
from .delay.schedule_reader import DelayQueues
from .delay.scheduler import Scheduler
from .log.append_counts import AppendCounts
from .log.background_chores import Keeper
from .log.commit_log import CommitLog
from .log.disk_guard import DiskGuard
from .log.log_tail import LogTail
from .log.open_store import OpenStore, close_store, release_store
from .log.page_preallocation import PagesAhead
from .metrics import WriterMetrics
from .retention.retention_thread import Retention
from .retention.trusted_clock import AgeClock
from .rpc.access_interceptor import AccessInterceptor
from .rpc.append_times import AppendTimes
from .rpc.channel_options import connection_options, message_options
from .rpc.commit_log_service import CommitLogService, Identity
from .rpc.committed_bytes import LogReader
from .rpc.error_interceptor import ErrorInterceptor
from .rpc.request_id_interceptor import RequestIdInterceptor
from .rpc.send_back import SendBack
from .rpc.tls_credentials import server_credentials
from .rpc.topic_service import TopicService
from .topics.topic_table import TopicTable

if TYPE_CHECKING:
    from .rpc.append_spans import AppendSpans

log = structlog.get_logger()

SERVICES = (
    commit_log_pb2.DESCRIPTOR.services_by_name["CommitLogService"].full_name,
    topics_pb2.DESCRIPTOR.services_by_name["TopicService"].full_name,
)
_ANY_HOST = bytes(8)
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class WriterServer:
    """The gRPC server of an open store, which it closes at the end. Create it on the event loop.

    tls: None for plaintext. guard: None for no access control.
    """

    def __init__(
        self, settings: WriterSettings, store: OpenStore, tls: Reloading | None = None, guard: Guard | None = None
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._tracing = open_tracing(settings, "writer")
        self.guard = guard or Guard(None, RateLimits(), None)
        self._following: list[asyncio.Task[None]] = []
        self._store = store
        self._stopping = asyncio.Event()
        self._health = health_aio.HealthServicer()
        self._server = grpc.aio.server(
            interceptors=[
                RequestIdInterceptor(),
                ErrorInterceptor(require_deadline=settings.require_deadline),
                AccessInterceptor(self.guard, store_name=settings.store_name),
            ],
            options=[("grpc.so_reuseport", 0), *message_options(settings), *connection_options(settings)],
        )
        self.port = 0
        self.metrics: WriterMetrics  # set by `start`
        self._commit_log: CommitLog
        self._service: CommitLogService
        self._topic_service: TopicService
        self._reader: LogReader
        self._retention: Retention
        self._scheduler: Scheduler

    async def start(self) -> None:
        """Bind the address and start to serve. Raises RuntimeError if the address cannot be bound."""
        warm_up(_ANY_HOST)  # before the bind, after which clients connect and would wait
        self.port = self._bind(self._settings.writer_listen)
        self._put_together()
        await self._set_health(_SERVING)
        self._commit_log.start()
        self._retention.start()
        self._scheduler.start()
        await self._server.start()
        followers = [*([] if self._tls is None else [self._tls.follow()]), *self.guard.followers()]
        self._following = [asyncio.create_task(follower) for follower in followers]
        host = self._settings.writer_listen.rpartition(":")[0]
        log.info(
            "writer_started",
            address=f"{host}:{self.port}",
            port=self.port,
            tls=self._tls is not None,
            term=self._store.term.number,
        )

    def _bind(self, listen: str) -> int:
        if self._tls is None:
            return self._server.add_insecure_port(listen)
        return self._server.add_secure_port(listen, server_credentials(self._tls))

    def _put_together(self) -> None:
        settings, store = self._settings, self._store
        advertised = settings.advertised_host(self.port)
        store_host = encode_host(advertised)
        counts, times = AppendCounts(settings.metrics_max_topics), AppendTimes(settings.append_warning_ms)
        topics = TopicTable(
            store.paths, store.storage, auto_create=settings.auto_create_topics, default_queues=settings.default_queues
        )
        self._commit_log = self._make_commit_log(store_host, counts, topics)
        self._reader = LogReader(self._open_log)
        self._retention = self._make_retention()
        self._scheduler = self._make_scheduler(topics, store_host)
        self.metrics = WriterMetrics(store, self._commit_log, self._retention, counts, times)
        self._service = CommitLogService(
            settings,
            Identity(store.term, store_host, str(advertised)),
            self._commit_log,
            topics,
            Admission(Limits(settings.max_message_size_bytes, store.segments.size), store_host),
            self._reader,
            counts,
            times,
            SendBack(self._commit_log, topics, self._reader, store_host, settings.max_reconsume_times),
            on_delayed=self._scheduler.appended,
            free_disk_bytes=lambda: store.free_bytes(store.paths.root),
            spans=self._make_spans(),
        )
        self._topic_service = TopicService(
            topics, store.recovered.offsets, self._commit_log, store_name=settings.store_name, address=str(advertised)
        )
        self._add_services()

    def _make_commit_log(self, store_host: bytes, counts: AppendCounts, topics: TopicTable) -> CommitLog:
        settings, store = self._settings, self._store
        window = Window(settings.idempotence_window_batches, store.recovered.tail_keys)
        pages = PagesAhead(store.segments.log)
        tail = LogTail(
            store.segments,
            Encoder(store_host),
            store.recovered.offsets,
            window,
            DiskGuard(store.paths.root, settings.min_free_disk_bytes, look=store.free_bytes),
            store.journal,
            pages,
            position=store.recovered.end,
            store_timestamp=store.recovered.store_timestamp,
            buffer_size=settings.write_buffer_size_bytes,
        )
        return CommitLog(
            settings,
            segments=store.segments,
            tail=tail,
            window=window,
            checkpoint=store.checkpoint,
            flushed=store.flushed,
            journal=store.journal,
            pages=pages,
            counts=counts,
            dead_end=topics.dead_end,
            make_keeper=self._make_keeper,
            on_failure=self._stopping.set,
        )

    def _add_services(self) -> None:
        commit_log_pb2_grpc.add_CommitLogServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
            self._service, self._server
        )
        topics_pb2_grpc.add_TopicServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
            self._topic_service, self._server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if self._settings.answers_reflection:
            names = (*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)

    def _make_spans(self) -> AppendSpans | None:
        if self._tracing is None:
            return None
        from .rpc.append_spans import AppendSpans

        return AppendSpans(self._tracing.tracer)

    def _make_keeper(self, flushed_offset: Callable[[], int], on_failure: Callable[[StoreError], None]) -> Keeper:
        store = self._store
        return Keeper(
            store.segments,
            store.make_committed_durable,
            store.storage,
            store.snapshot_path,
            interval_s=self._settings.confirm_interval_ms / 1000,
            flushed_offset=flushed_offset,
            on_failure=on_failure,
        )

    def _open_log(self) -> MappedFileQueue:
        """Open the log's files again, read-only."""
        return open_log(self._store.paths.log_folders, self._store.segments.size)

    def _make_retention(self) -> Retention:
        store = self._store
        return Retention(
            self._settings.retention,
            store.segments.log,
            store.paths,
            store.snapshot_path,
            term=store.term.number,
            interval_s=self._settings.retention_interval_ms / 1000,
            open_log=self._open_log,
            ask_for_snapshot=self._commit_log.ask_for_snapshot,
            on_deleted=self._reader.let_go,
            on_failure=self._commit_log.fail,
            clock=AgeClock(grace_ms=self._settings.retention_clock_grace_ms),
        )

    def _make_scheduler(self, topics: TopicTable, store_host: bytes) -> Scheduler:
        store = self._store
        offsets = store.recovered.offsets
        return Scheduler(
            lambda: DelayQueues(store.paths),
            Delivery(self._commit_log, topics, store_host),
            store.paths.delay_offsets,
            store.storage,
            next_offsets={
                level: offsets.next(QueueKey(SCHEDULE_TOPIC, level - 1)) for level in range(1, MAX_DELAY_LEVEL + 1)
            },
            log_end=store.recovered.end,
            save_interval_ms=self._settings.delay_offset_interval_ms,
        )

    def ask_to_stop(self) -> None:
        """Make `run` stop the server."""
        self._stopping.set()

    async def run(self) -> StoreError | None:
        """Serve until `ask_to_stop` or a failure, then stop in order.

        Return the error with which the log failed; None after a clean stop.
        """
        await self._stopping.wait()
        await self._set_health(_NOT_SERVING)
        if self._commit_log.failure is None:
            await asyncio.sleep(self._settings.drain_ms / 1000)
        for task in self._following:
            task.cancel()
        failure = self._commit_log.failure
        log.info("writer_stopping", clean=failure is None)
        await asyncio.to_thread(self._retention.close)
        await self._scheduler.stop()
        closing = asyncio.create_task(self._commit_log.close())
        await asyncio.sleep(0)
        if failure is None:
            await closing
        self._service.close()
        await self._server.stop(self._settings.shutdown_grace_ms / 1000)
        await closing
        self._reader.close()
        self.guard.close()
        failure = self._commit_log.failure
        if failure is None:
            await self._scheduler.save()
            close_store(self._store, self._commit_log.snapshot())
            log.info("writer_stopped", committed_offset=self._commit_log.committed.offset)
        else:
            release_store(self._store)
            log.error("writer_failed", reason=failure.message)
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        return failure

    async def _set_health(self, status: health_pb2.HealthCheckResponse.ServingStatus.ValueType) -> None:
        for name in ("", *SERVICES):
            await self._health.set(name, status)
