"""State that all routes share: the store, the watcher, the settings, the groups and the writer's channel."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import structlog
from starlette.requests import Request

from tidemark.access.guard import Guard
from tidemark.access.rate_limits import RateLimits
from tidemark.errors import StoreError, TopicNotFoundError
from tidemark.read.cached import NotCachedError, cached_only
from tidemark.read.log.log_files import LogFiles
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitsGoneError
from tidemark.read.watermark import Watermark
from tidemark.store.storage import DiskStorage
from tidemark.tls.reloading import Reloading

from ..config import QuerySettings
from ..groups.consumer_groups import ConsumerGroups
from ..groups.consumer_offsets import ConsumerOffsets
from ..groups.member_table import Leases
from ..groups.saved_members import leave_members, take_members
from .lost_units import LostUnits
from .metrics import Metrics
from .unsent_bytes_limit import UntakenAnswers
from .watermark_watcher import WatermarkWatcher
from .writer_client import WriterForward

T = TypeVar("T")
_log = structlog.get_logger()


class Facade:
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
        self._storage = DiskStorage()
        self._leases = Leases(
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
            settings, store=self.store, offsets=self.offsets, leases=self._leases, read=self.read
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
        self.answers = UntakenAnswers(settings.query_max_untaken_bytes)
        self.metrics = Metrics(
            store=self.store,
            watcher=self.watcher,
            offsets=self.offsets,
            leases=self._leases,
            guard=self.guard,
            tls=tls,
            max_topics=settings.metrics_max_topics,
        )
        self._readers = ThreadPoolExecutor(settings.query_read_threads, "read")

    async def read(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run *function* on a reading thread, so that a slow disk does not block other requests."""
        call = functools.partial(contextvars.copy_context().run, steady, function, *arguments)
        return await asyncio.get_running_loop().run_in_executor(self._readers, call)

    async def read_in_place(self, function: Callable[[], T]) -> T:
        """Run *function* on the event loop if all its data is in memory, otherwise as `read`.

        A switch to a thread takes longer than a small read.
        """
        with contextlib.suppress(NotCachedError), cached_only():
            return steady(function)
        return await self.read(function)

    async def wait(self, request: Request, ready: Callable[[Watermark], bool], deadline: float) -> bool:
        """Wait until *ready*, *deadline* (monotonic) or a disconnect; return True if the caller should read again."""
        client = "" if request.client is None else request.client.host
        while (left := deadline - time.monotonic()) > 0:
            if await self.watcher.wait(ready, min(left, _DISCONNECT_CHECK_S), client=client):
                return True
            if self.watcher.is_stopped or await request.is_disconnected():
                return False
        return False

    async def let_go_of_deleted(self, every_s: float = 10.0) -> None:
        """Close files that retention has deleted, in an endless loop, because there may be no requests that do it."""
        while True:
            await asyncio.sleep(every_s)
            with contextlib.suppress(StoreError, OSError):  # the next request reports it
                await self.read(self.store.let_go_of_deleted)
                await self.read(self.index.tables)

    async def let_go_of_expired(self) -> None:
        """Remove members whose session has timed out, in an endless loop, because no request may name their group."""
        while True:
            await asyncio.sleep(self.settings.query_recheck_ms / 1000)
            self.groups.leases.expire()

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

    def position(self, watermark: Watermark) -> dict[str, Any]:
        """Return watermark, committed offset and lag as every answer contains them."""
        return {
            "watermark": {
                "term": watermark.term,
                "physical_offset": watermark.physical_offset,
                "published_ms": watermark.published_ms,
            },
            "committed_offset": watermark.committed_offset,
            "lag_bytes": watermark.lag_bytes,
        }

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
        self._readers.shutdown(wait=False, cancel_futures=True)


def _report_regressed(published: int, marked: int) -> None:
    _log.error("watermark_regressed", published_offset=published, marked_offset=marked)


_DISCONNECT_CHECK_S = 1.0
_LOOKS = 5


def steady(function: Callable[..., T], *arguments: Any) -> T:
    """Return the function's result. Call it again if files expired during the call: it then reads other bounds."""
    for _ in range(_LOOKS - 1):
        with contextlib.suppress(UnitsGoneError):
            return function(*arguments)
    return function(*arguments)


def facade_of(request: Request) -> Facade:
    """Return the facade that serves a request."""
    facade: Facade = request.app.state.facade
    return facade
