"""QueryRemoting: the query service's server for RocketMQ's clients, composed of its handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.errors import TopicNotFoundError
from tidemark.remoting.codes import RequestCode
from tidemark.remoting_server.client_groups import ClientGroups
from tidemark.remoting_server.exchange import Exchange, Handler
from tidemark.remoting_server.group_requests import GroupLimits, GroupRequests
from tidemark.remoting_server.refusals import refusals
from tidemark.remoting_server.saved_clients import SavedClients, load_clients
from tidemark.remoting_server.server import RemotingServer
from tidemark.remoting_server.topic_routes import TopicRoutes
from tidemark.store.originals.topics import TopicConfig
from tidemark.store.storage import DiskStorage

from ..state.service_state import ServiceState
from .lock_requests import LockRequests
from .lookup_requests import LookupRequests
from .offset_commits import OffsetCommits
from .offset_requests import OffsetRequests
from .pull_requests import PullRequests
from .queue_locks import QueueLocks
from .send_back_requests import SendBackRequests

if TYPE_CHECKING:
    from ..pull.pull_spans import PullSpans

_EXPIRE_S = 10.0


class QueryRemoting(Collector):
    """The server, the groups of its clients, their locks and commits. Create it on the event loop.

    spans: None if traces are off.
    """

    def __init__(self, state: ServiceState, spans: PullSpans | None) -> None:
        self._state = state
        self._spans = spans
        settings = state.settings
        self._path = state.store.paths.query_clients
        self._saved = SavedClients(self._path, DiskStorage())
        self._groups = ClientGroups(load_clients(self._path), on_change=self._saved.save)
        self._has_groups = state.offsets.is_owner
        self._locks = QueueLocks()
        self._commits = OffsetCommits(state.groups, interval_s=settings.remoting_offset_interval_ms / 1000)
        self._offsets = OffsetRequests(state, self._commits)
        limits = GroupLimits(
            settings.query_max_groups, settings.query_max_group_members, settings.query_max_member_topics
        )
        self._requests = GroupRequests(self._groups, limits, on_gone=self._locks.free)
        self.server = RemotingServer(settings.connection_limits, state.guard, state.tls, on_lost=self._requests.lost)
        self._expiring: asyncio.Task[None] | None = None

    @property
    def address(self) -> str | None:
        """Host and port for clients."""
        return self._state.settings.route_addresses(query_port=self.server.port).query

    async def bind(self) -> None:
        """Bind the address. Raises OSError."""
        await self.server.bind(self._state.settings.query_remoting_listen)

    async def start(self) -> None:
        """Accept connections."""
        self._state.groups.clients = self._groups
        await self.server.start(self._handlers())
        self._expiring = asyncio.create_task(self._expire())

    def _handlers(self) -> dict[int, Handler]:
        state, settings = self._state, self._state.settings
        routes = TopicRoutes(
            self._topic,
            settings.route_addresses(query_port=self.server.port),
            store_name=settings.store_name,
            cluster=settings.cluster_name,
            default_queues=settings.default_queues if settings.auto_create_topics else 0,
        )
        of_groups = {
            **self._requests.handlers(),
            **LockRequests(self._locks, max_queues=settings.query_max_commit_queues).handlers(),
        }
        return {
            **refusals(),
            RequestCode.GET_ROUTEINFO_BY_TOPIC: routes.answer,
            **{code: self._by_owner(handler) for code, handler in of_groups.items()},
            **PullRequests(state, self._groups, self._commits, self._spans).handlers(),
            **self._offsets.handlers(),
            **LookupRequests(state).handlers(),
            **SendBackRequests(state).handlers(),
        }

    def _topic(self, name: str) -> TopicConfig | None:
        try:
            return self._state.store.topic(name)
        except TopicNotFoundError:
            return None

    def _by_owner(self, handler: Handler) -> Handler:
        """Return a handler that refuses if another process has the groups of this store."""

        def handle(exchange: Exchange) -> Coroutine[Any, Any, None] | None:
            if not self._has_groups:
                self._take_groups()
            return handler(exchange)

        return handle

    def _take_groups(self) -> None:
        """Become the owner of the groups, and await their members. Raises StoreLockedError."""
        self._state.offsets.require_owner()
        self._groups.expect(load_clients(self._path))
        self._has_groups = True

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRE_S)
            self._requests.expire()
            self._locks.expire()

    def refuse_new(self) -> None:
        """Answer new requests with GO_AWAY, because the service stops. Safe in a signal handler."""
        self.server.refuse_new()

    async def stop(self, grace_s: float) -> None:
        """Answer the requests in work for at most *grace_s*, close all connections and write the last commits."""
        if self._expiring is not None:
            self._expiring.cancel()
        await self.server.stop(grace_s)
        await self._offsets.close()
        await self._commits.close()
        await self._saved.close()

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families."""
        yield from self.server.counts.families(self.server.connections)
