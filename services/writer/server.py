"""WriterServer: serves an open store over gRPC, with health, reflection, and the stop after a signal or a failure."""

from __future__ import annotations

import asyncio

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import StoreError
from tidemark.tls.reloading import Reloading
from tidemark.tracing.opening import open_tracing
from tidemark.v1 import commit_log_pb2, commit_log_pb2_grpc, topics_pb2, topics_pb2_grpc

from .batch.record_encoder import warm_up
from .composition import compose
from .config import WriterSettings
from .log.open_store import OpenStore, close_store, release_store
from .metrics import WriterMetrics
from .rpc.access_interceptor import AccessInterceptor
from .rpc.channel_options import connection_options, message_options
from .rpc.error_interceptor import ErrorInterceptor
from .rpc.request_id_interceptor import RequestIdInterceptor
from .rpc.tls_credentials import server_credentials

log = structlog.get_logger()

SERVICES = (
    commit_log_pb2.DESCRIPTOR.services_by_name["CommitLogService"].full_name,
    topics_pb2.DESCRIPTOR.services_by_name["TopicService"].full_name,
)
_ANY_HOST = bytes(8)
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class WriterServer:
    """The gRPC server of an open store, which it closes at the end. Create it on the event loop: it binds its address.

    Raises RuntimeError if the address cannot be bound.

    tls: None for plaintext. guard: None for no access control. stopping: set it to end `run`.
    """

    def __init__(
        self,
        settings: WriterSettings,
        store: OpenStore,
        tls: Reloading | None = None,
        guard: Guard | None = None,
        stopping: asyncio.Event | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._tls = tls
        self.guard = guard or Guard(None, RateLimits(), None)
        self._following: list[asyncio.Task[None]] = []
        self.stopping = stopping or asyncio.Event()
        self._health = health_aio.HealthServicer()
        self._server = grpc.aio.server(
            interceptors=[
                RequestIdInterceptor(),
                ErrorInterceptor(require_deadline=settings.require_deadline),
                AccessInterceptor(self.guard, store_name=settings.store_name),
            ],
            options=[("grpc.so_reuseport", 0), *message_options(settings), *connection_options(settings)],
        )
        warm_up(_ANY_HOST)  # before the bind, after which clients connect and would wait
        self.port = self._bind(settings.writer_listen)
        self._tracing = open_tracing(settings, "writer")
        self.parts = compose(
            settings,
            store,
            port=self.port,
            guard=self.guard,
            tls=tls,
            tracing=self._tracing,
            on_failure=self.stopping.set,
        )
        self._add_services()

    @property
    def metrics(self) -> WriterMetrics:
        """The collector of the writer's metrics."""
        return self.parts.metrics

    def _bind(self, listen: str) -> int:
        if self._tls is None:
            return self._server.add_insecure_port(listen)
        return self._server.add_secure_port(listen, server_credentials(self._tls))

    def _add_services(self) -> None:
        commit_log_pb2_grpc.add_CommitLogServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
            self.parts.commit_log_service, self._server
        )
        topics_pb2_grpc.add_TopicServiceServicer_to_server(  # type: ignore[no-untyped-call, unused-ignore]
            self.parts.topic_service, self._server
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        if self._settings.answers_reflection:
            names = (*SERVICES, "grpc.health.v1.Health", reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)

    async def bind_remoting(self) -> None:
        """Bind the address for RocketMQ's clients. Raises OSError."""
        if self.parts.remoting is not None:
            await self.parts.remoting.bind()

    async def start(self) -> None:
        """Start the threads and serve. Call `bind_remoting` before."""
        await self._set_health(_SERVING)
        self.parts.commit_log.start()
        self.parts.retention.start()
        self.parts.scheduler.start()
        if self.parts.remoting is not None:  # before gRPC, whose health must mean that both are served
            await self.parts.remoting.start()
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
        await self._set_health(_NOT_SERVING)
        if self.parts.commit_log.failure is None:
            await asyncio.sleep(self._settings.drain_ms / 1000)
        for task in self._following:
            task.cancel()
        log.info("writer_stopping", clean=self.parts.commit_log.failure is None)

    async def _stop_parts(self) -> None:
        commit_log = self.parts.commit_log
        is_clean = commit_log.failure is None
        await asyncio.to_thread(self.parts.retention.close)
        await self.parts.scheduler.stop()
        closing = asyncio.create_task(commit_log.close())
        await asyncio.sleep(0)
        if is_clean:
            await closing
        self.parts.commit_log_service.close()
        await self._stop_serving()
        await closing
        self.parts.reader.close()
        self.guard.close()

    async def _stop_serving(self) -> None:
        grace_s = self._settings.shutdown_grace_ms / 1000
        remoting = self.parts.remoting
        await asyncio.gather(self._server.stop(grace_s), *([] if remoting is None else [remoting.stop(grace_s)]))

    async def _close_store(self, failure: StoreError | None) -> None:
        commit_log = self.parts.commit_log
        if failure is not None:
            release_store(self._store)
            log.error("writer_failed", reason=failure.message)
            return
        await self.parts.scheduler.save()
        close_store(self._store, commit_log.snapshot())
        log.info("writer_stopped", committed_offset=commit_log.committed.offset)

    async def _set_health(self, status: health_pb2.HealthCheckResponse.ServingStatus.ValueType) -> None:
        for name in ("", *SERVICES):
            await self._health.set(name, status)
