"""State that all routes share: the store, the watcher, the settings, the groups and the writer's channel."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import structlog
from starlette.requests import Request

from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import TopicNotFoundError
from tidemark.read.log.log_files import LogFiles
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.store_reader import StoreReader
from tidemark.store.storage import DiskStorage
from tidemark.tls.reloading import Reloading

from ..config import QuerySettings
from ..groups.consumer_groups import ConsumerGroups
from ..groups.consumer_offsets import ConsumerOffsets
from ..groups.member_table import MemberTable
from ..groups.saved_members import leave_members, take_members
from .lost_units import LostUnits
from .metrics import Metrics
from .queue_ends import QueueEnds
from .read_threads import ReadThreads
from .shared_pages import SharedPages
from .unsent_bytes_limit import UnsentBytesLimit
from .watermark_watcher import WatermarkWatcher
from .writer_client import WriterForward

_log = structlog.get_logger()


class RemotingDoor(Protocol):
    """The server for RocketMQ's clients, as other parts of the service use it."""

    @property
    def address(self) -> str | None:
        """Host and port for clients."""

    def refuse_new(self) -> None:
        """Refuse new requests."""


class ServiceState:
    """The shared state of a service for one store.

    Args:
        tls: None for plaintext.
        guard: None if every caller may do everything.
    """

    def __init__(self, settings: QuerySettings, tls: Reloading | None = None, guard: Guard | None = None) -> None:
        self.settings = settings
        self.guard = guard or Guard(None, RateLimits(), None)
        self.is_draining = False  # True after a stop signal: /readyz then answers 503
        self.tls = tls
        self.remoting: RemotingDoor | None = None  # the server for RocketMQ's clients, if there is one
        self.store = StoreReader(
            settings.store_root,
            state=settings.state_root,
            log_folders=settings.log_folders(settings.store_root),
            refresh_s=settings.query_recheck_ms / 1000,
            on_regressed=_report_regressed,
        )
        self.index = IndexReader(
            self.store.paths.index,
            more=self.store.paths.own_index,
            slots=settings.index_slots,
            entries=settings.index_entries,
        )
        self.log_files = LogFiles(self.store.log)
        self.reads = ReadThreads(settings.query_read_threads)
        self._storage = DiskStorage()
        self._leases = MemberTable(
            settings.store_name, max_groups=settings.query_max_groups, max_members=settings.query_max_group_members
        )
        self.offsets = ConsumerOffsets(
            self.store.paths,
            self._storage,
            limit=settings.query_max_offsets,
            topic_exists=self._topic_exists,
            on_owned=self._take_members,
        )
        self.lost_units = LostUnits(
            self.store.paths.lost_units,
            limit=settings.query_max_lost_units,
            may_write=lambda: self.offsets.is_owner,
        )
        self.groups = ConsumerGroups(
            settings, store=self.store, offsets=self.offsets, leases=self._leases, read=self.reads.read
        )
        self.writer = WriterForward(
            settings.writer_address, timeout_ms=settings.query_writer_timeout_ms, credentials=settings.dialling
        )
        self.watcher = WatermarkWatcher(
            self.store,
            recheck_ms=settings.query_recheck_ms,
            max_waiting=settings.query_max_waiting,
            max_waiting_per_client=settings.query_max_waiting_per_client,
        )
        self.follow_pages: SharedPages[Any] = SharedPages()
        self.queue_ends = QueueEnds(self.store, self.watcher, self.follow_pages)
        self.answers = UnsentBytesLimit(settings.query_max_untaken_bytes)
        self.metrics = Metrics(
            store=self.store,
            watcher=self.watcher,
            offsets=self.offsets,
            leases=self._leases,
            guard=self.guard,
            tls=tls,
            max_topics=settings.metrics_max_topics,
        )

    def _topic_exists(self, name: str) -> bool:
        try:
            self.store.topic(name)
        except TopicNotFoundError:
            return False
        return True

    def require_store(self, name: str | None) -> None:
        """Raise TopicNotFoundError if a request names another store."""
        if name is not None and name != self.settings.store_name:
            raise TopicNotFoundError(
                f"store is {name}, but this service serves {self.settings.store_name}", store=self.settings.store_name
            )

    def _take_members(self) -> None:
        """Take over the members that the previous owner of the offsets saved."""
        try:
            self._leases.take_over(take_members(self.store.paths, self._storage))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.warning("members_not_taken_over", path=str(self.store.paths.members), error=str(error))

    async def close(self) -> None:
        """Save the members for the next process, and close all resources."""
        self.watcher.close()
        if self.offsets.is_owner:
            await asyncio.to_thread(leave_members, self.store.paths, self._storage, self._leases.to_json())
        await asyncio.to_thread(self.offsets.close)
        await self.writer.close()
        self.guard.close()
        self.reads.close()


def _report_regressed(published: int, marked: int) -> None:
    _log.error("watermark_regressed", published_offset=published, marked_offset=marked)


def state_of(request: Request) -> ServiceState:
    """Return the state of the service that answers *request*."""
    state: ServiceState = request.app.state.service
    return state
