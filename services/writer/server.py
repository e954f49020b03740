"""WriterServer: serves an open store over gRPC, with health, reflection, and the stop after a signal or a failure."""

from __future__ import annotations

import asyncio

import structlog

from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import StoreError
from tidemark.tls.reloading import Reloading
from tidemark.tracing.opening import open_tracing
from tidemark.v1 import commit_log_pb2_grpc, replication_pb2_grpc, topics_pb2_grpc

from .batch.record_encoder import warm_up
from .composition import GroupRole, compose
from .config import WriterSettings
from .log.open_store import OpenStore, close_store, release_store
from .metrics import WriterMetrics
from .rpc.member_server import COMMIT_LOG, REPLICATION, TOPICS, GrpcServer
from .rpc.replication_service import WriterReplicationService

log = structlog.get_logger()

_SERVICES = (COMMIT_LOG, TOPICS)


class WriterServer:
    """The gRPC server of an open store, which it closes at the end. Create it on the event loop: it binds its address.

    Raises RuntimeError if the address cannot be bound.

    tls: None for plaintext. guard: None for no access control. stopping: set it to end `run`. group: the role of this
    member in its group; None without replication.
    """

    def __init__(
        self,
        settings: WriterSettings,
        store: OpenStore,
        tls: Reloading | None = None,
        guard: Guard | None = None,
        stopping: asyncio.Event | None = None,
        group: GroupRole | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._tls = tls
        self._group = group
        self._services = _SERVICES if group is None else (*_SERVICES, REPLICATION)
        guard = guard or Guard(None, RateLimits(), None)
        self.stopping = stopping or asyncio.Event()
        warm_up()  # before the bind, after which clients connect and would wait
        self._grpc = GrpcServer(settings, tls, guard, self._services)
        self.port = self._grpc.port
        self._tracing = open_tracing(settings, "writer")
        self.parts = compose(
            settings,
            store,
            port=self.port,
            guard=guard,
            tls=tls,
            tracing=self._tracing,
            on_failure=self.stopping.set,
            group=group,
        )
        self._add_services()

    @property
    def metrics(self) -> WriterMetrics:
        """The collector of the writer's metrics."""
        return self.parts.metrics

    def _add_services(self) -> None:
        server = self._grpc.server
        commit_log_pb2_grpc.add_CommitLogServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
            self.parts.commit_log_service, server
        )
        topics_pb2_grpc.add_TopicServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
            self.parts.topic_service, server
        )
        if self.parts.replication is not None and self._group is not None:
            replication_pb2_grpc.add_ReplicationServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
                WriterReplicationService(self._settings, self.parts.replication, self._group.repair.member_log), server
            )
        self._grpc.add_health()

    async def bind_remoting(self) -> None:
        """Bind the address for RocketMQ's clients. Raises OSError."""
        if self.parts.remoting is not None:
            await self.parts.remoting.bind()

    async def start(self) -> None:
        """Start the threads and serve. Call `bind_remoting` before."""
        await self._grpc.report(("", *self._services))
        self.parts.commit_log.start()
        if self.parts.replication is not None:
            self.parts.replication.start()
        self.parts.retention.start()
        if self._group is not None:
            self._group.repair.start(self.parts.commit_log.fail)
        self.parts.scheduler.start()
        if self.parts.remoting is not None:  # before gRPC, whose health must mean that both are served
            await self.parts.remoting.start()
        await self._grpc.server.start()
        log.info(
            "writer_started",
            address=self._grpc.address,
            port=self.port,
            tls=self._tls is not None,
            term=self._store.term.number,
        )

    async def run(self) -> StoreError | None:
        """Serve until `stopping` is set, also by a failure, then stop in order.

        Return the error with which the log failed; None after a clean stop.
        """
        await self.stopping.wait()
        await self._drain()
        await self._stop_parts()
        failure = self.parts.commit_log.failure
        await self._close_store(failure)
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)
        return failure

    async def _drain(self) -> None:
        """Report NOT_SERVING and, if the log works, keep serving for a while so that clients go elsewhere."""
        await self._grpc.report(())
        if self.parts.commit_log.failure is None:
            await asyncio.sleep(self._settings.drain_ms / 1000)
        log.info("writer_stopping", clean=self.parts.commit_log.failure is None)

    async def _stop_parts(self) -> None:
        commit_log = self.parts.commit_log
        is_clean = commit_log.failure is None
        if self._group is not None:
            await self._group.repair.stop()
        await asyncio.to_thread(self.parts.retention.close)
        await self.parts.scheduler.stop()
        closing = asyncio.create_task(commit_log.close())
        await asyncio.sleep(0)
        if is_clean:
            await closing
        if self.parts.replication is not None:
            await self.parts.replication.stop()
        self.parts.commit_log_service.close()
        await self._stop_serving()
        await closing
        self.parts.reader.close()

    async def _stop_serving(self) -> None:
        grace_s = self._settings.shutdown_grace_ms / 1000
        remoting = self.parts.remoting
        await asyncio.gather(self._grpc.server.stop(grace_s), *([] if remoting is None else [remoting.stop(grace_s)]))

    async def _close_store(self, failure: StoreError | None) -> None:
        commit_log = self.parts.commit_log
        if failure is not None:
            release_store(self._store)
            log.error("writer_failed", reason=failure.message)
            return
        await self.parts.scheduler.save()
        close_store(self._store, commit_log.snapshot())
        log.info("writer_stopped", committed_offset=commit_log.committed.offset)
