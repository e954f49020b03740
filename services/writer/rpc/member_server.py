"""The gRPC server of the writer's process, in each of its roles: interceptors, limits, address, health."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from tidemark.access.guard import Guard
from tidemark.tls.reloading import Reloading
from tidemark.v1 import commit_log_pb2, replication_pb2, topics_pb2

from ..config import WriterSettings
from .access_interceptor import AccessInterceptor
from .channel_options import connection_options, message_options
from .error_interceptor import ErrorInterceptor
from .request_id_interceptor import RequestIdInterceptor
from .tls_credentials import server_credentials

COMMIT_LOG = commit_log_pb2.DESCRIPTOR.services_by_name["CommitLogService"].full_name
TOPICS = topics_pb2.DESCRIPTOR.services_by_name["TopicService"].full_name
REPLICATION = replication_pb2.DESCRIPTOR.services_by_name["ReplicationService"].full_name
_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class GrpcServer:
    """A server that is not started yet. Create it on the event loop: it binds its address.

    names        the services that it will have; they report their health
    interceptors inside those for request ids, errors and access

    Raises RuntimeError if the address cannot be bound.
    """

    def __init__(
        self,
        settings: WriterSettings,
        tls: Reloading | None,
        guard: Guard,
        names: Sequence[str],
        interceptors: Sequence[grpc.aio.ServerInterceptor] = (),
    ) -> None:
        self._settings = settings
        self._names = tuple(names)
        self._health = health_aio.HealthServicer()
        self.server = grpc.aio.server(
            interceptors=[
                RequestIdInterceptor(),
                ErrorInterceptor(require_deadline=settings.require_deadline),
                AccessInterceptor(guard, store_name=settings.store_name),
                *interceptors,
            ],
            options=[("grpc.so_reuseport", 0), *message_options(settings), *connection_options(settings)],
        )
        listen = settings.writer_listen
        if tls is None:
            self.port = self.server.add_insecure_port(listen)
        else:
            self.port = self.server.add_secure_port(listen, server_credentials(tls))

    @property
    def address(self) -> str:
        """The bound address."""
        return f"{self._settings.writer_listen.rpartition(':')[0]}:{self.port}"

    def add_health(self) -> None:
        """Add health and reflection, after all other services."""
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.server)
        if self._settings.answers_reflection:
            names = (*self._names, "grpc.health.v1.Health", reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self.server)

    async def report(self, serving: Sequence[str]) -> None:
        """Report that the services in *serving* can be used, and the others not. "" is the process."""
        for name in ("", *self._names):
            await self._health.set(name, _SERVING if name in serving else _NOT_SERVING)
