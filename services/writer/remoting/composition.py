"""WriterRemoting: the writer's server for RocketMQ's clients, composed of its handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial

from prometheus_client.core import Metric

from tidemark.access.guard import Guard
from tidemark.metrics.families import number
from tidemark.remoting.codes import RequestCode, ResponseCode
from tidemark.remoting_server.client_groups import ClientGroups
from tidemark.remoting_server.exchange import Handler
from tidemark.remoting_server.group_requests import GroupLimits, GroupRequests
from tidemark.remoting_server.refusals import refusals, refusing
from tidemark.remoting_server.saved_clients import SavedClients, load_clients
from tidemark.remoting_server.server import RemotingServer
from tidemark.remoting_server.settings import RouteAddresses
from tidemark.remoting_server.topic_routes import TopicRoutes
from tidemark.store.originals.topics import TopicConfig
from tidemark.tls.reloading import Reloading

from ..config import WriterSettings
from ..log.open_store import OpenStore
from ..slave_settings import VIP_OFFSET
from ..slaves.slave_requests import Master, SlaveRequests
from ..slaves.slave_server import SlaveServer
from ..submission.answers import fill_response
from ..submission.batch_submitter import BatchSubmitter
from ..topics.topic_table import TopicTable
from .append_requests import AppendRequests
from .send_requests import SendRequests

_EXPIRE_S = 10.0
_LIMITS = GroupLimits(groups=10_000, members=10_000, topics=1_000)
_OF_READERS = (
    RequestCode.PULL_MESSAGE,
    RequestCode.LITE_PULL_MESSAGE,
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.UPDATE_CONSUMER_OFFSET,
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    RequestCode.GET_MAX_OFFSET,
    RequestCode.GET_MIN_OFFSET,
    RequestCode.GET_EARLIEST_MSG_STORETIME,
    RequestCode.VIEW_MESSAGE_BY_ID,
    RequestCode.LOCK_BATCH_MQ,
    RequestCode.UNLOCK_BATCH_MQ,
)


class WriterRemoting:
    """The server, the groups of its clients, and the file with their members. Create it on the event loop."""

    def __init__(
        self,
        settings: WriterSettings,
        store: OpenStore,
        submitter: BatchSubmitter,
        topics: TopicTable,
        store_host: bytes,
        guard: Guard,
        tls: Reloading | None,
        slaves: SlaveServer | None = None,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._submitter = submitter
        self._store_host = store_host
        self._slaves = slaves
        self._paths = store.paths
        self._file_bytes = store.segments.size
        self._term = store.term.number
        self._saved = SavedClients(store.paths.writer_clients, store.storage)
        groups = ClientGroups(load_clients(store.paths.writer_clients), on_change=self._saved.save)
        self._requests = GroupRequests(groups, _LIMITS)
        self.server = RemotingServer(settings.connection_limits, guard, tls, on_lost=self._requests.lost)
        self._expiring: asyncio.Task[None] | None = None

    def address(self) -> str:
        """Return host:port for clients."""
        return self._settings.route_addresses(writer_port=self.server.port).writer or ""

    async def bind(self) -> None:
        """Bind the address, and those for slaves. Raises OSError."""
        listen = self._settings.writer_remoting_listen
        await self.server.bind(listen)
        if self._slaves is not None:
            await self._bind_for_slaves(self._slaves, listen)

    async def _bind_for_slaves(self, slaves: SlaveServer, listen: str) -> None:
        host, _, port = listen.rpartition(":")
        try:
            await self.server.bind_also(f"{host}:{int(port) - VIP_OFFSET}")
            await slaves.bind(self._settings.slaves_listen)
        except OSError as error:
            raise OSError(
                f"TIDEMARK_SLAVES_LISTEN needs {self._settings.slaves_listen}, and {host}:{int(port) - VIP_OFFSET}, at "
                f"which slaves ask for topics: {error}"
            ) from error

    async def start(self) -> None:
        """Accept connections."""
        addresses = self._settings.route_addresses(writer_port=self.server.port)
        await self.server.start(self._handlers(addresses))
        if self._slaves is not None:
            await self._slaves.start()
        self._expiring = asyncio.create_task(self._expire())

    def _handlers(self, addresses: RouteAddresses) -> dict[int, Handler]:
        settings = self._settings
        routes = TopicRoutes(
            self._topic,
            addresses,
            store_name=settings.store_name,
            cluster=settings.cluster_name,
            default_queues=settings.default_queues if settings.auto_create_topics else 0,
        )
        reader = addresses.query or "the query service"
        elsewhere = refusing(ResponseCode.NO_PERMISSION, f"this is the broker to send to: read from {reader}")
        sends = SendRequests(self._submitter, self._store_host, settings.max_reconsume_times)
        appends = AppendRequests(self._submitter, partial(fill_response, store_host=self._store_host, term=self._term))
        return {
            **refusals(),
            **dict.fromkeys(_OF_READERS, elsewhere),
            # Clients add up the answers of all brokers, so that only the query service may have matches.
            RequestCode.QUERY_MESSAGE: refusing(ResponseCode.QUERY_NOT_FOUND, "the query service answers lookups"),
            RequestCode.GET_ROUTEINFO_BY_TOPIC: routes.answer,
            **self._requests.handlers(),
            **sends.handlers(),
            **appends.handlers(),
            **self._slave_handlers(addresses),
        }

    def _slave_handlers(self, addresses: RouteAddresses) -> dict[int, Handler]:
        if self._slaves is None or addresses.writer is None:
            return {}
        settings = self._settings
        master = Master(
            settings.store_name,
            settings.cluster_name,
            addresses.writer,
            settings.slave_address(self._slaves.port),
            self._file_bytes,
        )
        return SlaveRequests(master, self._paths, self._slaves).handlers()

    def _topic(self, name: str) -> TopicConfig | None:
        topic = self._topics.get(name)
        return None if topic is None else topic.config

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(_EXPIRE_S)
            self._requests.expire()

    async def stop(self, grace_s: float) -> None:
        """Answer the requests in work for at most *grace_s*, and close all connections."""
        if self._expiring is not None:
            self._expiring.cancel()
        if self._slaves is not None:
            await self._slaves.stop()
        await self.server.stop(grace_s)
        await self._saved.close()

    def families(self) -> Iterator[Metric]:
        """Yield the metric families."""
        yield from self.server.counts.families(self.server.connections)
        if self._slaves is not None:
            yield number("tidemark_slaves", len(self._slaves.slaves))
            yield number("tidemark_slaves_behind_bytes", self._slaves.behind_bytes)
