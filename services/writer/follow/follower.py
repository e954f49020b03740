"""Follower: copies the log of a RocketMQ master, as a slave of it."""

from __future__ import annotations

import asyncio

import structlog

from tidemark.errors import (
    FlushFailedError,
    OffsetTooSmallError,
    ReplicaDivergedError,
    StoreContradictionError,
    StoreError,
)
from tidemark.remoting.codes import SlaveCode
from tidemark.replication.followed_broker import FollowedBroker, now_ms
from tidemark.store.originals.topics import load_topics
from tidemark.store.paths import StorePaths

from ..config import WriterSettings
from ..follow_settings import BrokerUrl
from ..replication.concurrent_works import until_first_ends
from ..replication.disk_thread import DiskThread
from .broker import Broker, LogBounds, fetch_table, find_broker, log_bounds
from .broker_calls import BrokerCalls
from .follower_disk import FollowerDisk
from .ha_link import HaFrame, HaLink
from .record_cutter import Cut, RecordCutter

log = structlog.get_logger()

_PAUSE_S = 1.0  # between two connections
_REPORT_S = 2.0  # RocketMQ's slaves report every 5 s
_TABLES_S = 10.0  # between two looks at the broker's tables and the end of its log
_MOST_WAITING_BYTES = 16 << 20  # received and not yet written; beyond, the connection is not read
_FINAL = (FlushFailedError, ReplicaDivergedError, StoreContradictionError, OffsetTooSmallError)


class Follower:
    """The copy of one broker's log. Lives on the event loop; its disk work runs in one thread.

    state: how the copy goes.
    """

    def __init__(self, settings: WriterSettings, url: BrokerUrl, paths: StorePaths, disk: FollowerDisk) -> None:
        self.state = FollowedBroker(url.broker, "", False, None, "not connected yet", now_ms())
        self._settings = settings
        self._url = url
        self._paths = paths
        self._disk = disk
        self._calls = BrokerCalls(settings.follow_access_key, settings.follow_secret_key_file)
        self._thread = DiskThread("follower-disk")
        self._received: list[HaFrame] = []
        self._waiting_bytes = 0
        self._changed = asyncio.Event()
        self._has_room = asyncio.Event()
        self._topics: set[str] = set()  # known to the broker, or asked for

    async def run(self) -> None:
        """Follow the broker, over its restarts.

        Raises:
            ReplicaDivergedError, OffsetTooSmallError: the log is no beginning of the broker's.
            StoreContradictionError: the broker's log cannot be followed.
            FlushFailedError: the disk fails.
        """
        while True:
            try:
                await self._follow()
            except _FINAL as error:
                await self._tell(is_connected=False, problem=error.message)
                raise
            except StoreError as error:
                if self.state.problem != error.message:  # the same reason is logged once
                    log.info("broker_not_followed", broker=self._url.broker, reason=error.message)
                await self._tell(is_connected=False, problem=error.message)
            await asyncio.sleep(_PAUSE_S)

    async def _follow(self) -> None:
        """Follow the broker until its connection ends. Raises StoreError."""
        broker = await find_broker(self._url, self._calls)
        self._require_same_size(broker)
        bounds = await log_bounds(self._calls, broker)
        await self._begin(bounds)
        await self._copy_tables(broker)
        cutter = await self._thread.run(self._disk.cutter, bounds.begin)
        link = await HaLink.open(broker)
        try:
            await link.report(cutter.first)
            log.info("broker_followed", address=broker.address, ha_address=link.address, start=self._disk.end)
            self._received, self._waiting_bytes = [], 0
            self._has_room.set()
            behind = max(0, bounds.end - self._disk.end)
            await self._tell(is_connected=True, address=broker.address, behind_bytes=behind)
            await until_first_ends(
                self._read(link),
                self._write(link, broker, cutter),
                self._report(link),
                self._look(broker),
                self._sync_confirm(),
            )
        finally:
            link.close()

    def _require_same_size(self, broker: Broker) -> None:
        if broker.log_file_bytes != self._disk.log_file_bytes:
            raise StoreContradictionError(
                f"the files of the broker's log have {broker.log_file_bytes} bytes, those of this store "
                f"{self._disk.log_file_bytes}: follow the broker with an empty folder",
                setting="commit_log_segment_size_bytes",
            )

    async def _begin(self, bounds: LogBounds) -> None:
        """Check that our log is a beginning of the broker's; begin an empty one where the broker's begins."""
        # after the last write of the connection before
        end, is_empty = await self._thread.run(lambda: (self._disk.end, self._disk.is_empty))
        if is_empty and end < bounds.begin:
            await self._thread.run(self._disk.begin_at, bounds.begin)
        elif end < bounds.begin:
            raise OffsetTooSmallError(
                f"the broker's log begins at {bounds.begin}, and this one ends at {end}: the broker has deleted what "
                "is missing. Follow it with an empty folder",
                min_offset=bounds.begin,
                max_offset=bounds.end,
            )
        elif end > bounds.end:
            raise ReplicaDivergedError(
                f"the broker's log ends at {bounds.end}, before this one at {end}: it is another log, or it has lost "
                "its end. Follow the broker with an empty folder",
                physical_offset=bounds.end,
            )

    async def _read(self, link: HaLink) -> None:
        while True:
            frame = await link.receive()
            if frame.data:
                self._received.append(frame)
                self._waiting_bytes += len(frame.data)
                if self._waiting_bytes > _MOST_WAITING_BYTES:
                    self._has_room.clear()
                self._changed.set()
            await self._has_room.wait()

    async def _write(self, link: HaLink, broker: Broker, cutter: RecordCutter) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            received, self._received = self._received, []
            cuts: list[Cut] = await self._thread.run(cutter.add, received)
            new = {topic for cut in cuts for topic in cut.topics} - self._topics
            if new:  # the pipeline needs a topic's configuration before its first record
                await self._copy_topics(broker)
                self._topics |= new
            for cut in cuts:
                if cut.damaged:
                    log.warning("damaged_records_copied", start=cut.start, end=cut.end, records=cut.damaged)
            if cuts:
                await link.report(await self._thread.run(self._disk.apply, cuts))
            if cutter.damage is not None:
                raise cutter.damage
            self._waiting_bytes -= sum(len(frame.data) for frame in received)
            self._has_room.set()

    async def _report(self, link: HaLink) -> None:
        """Report at intervals, because a master ends a silent connection."""
        while True:
            await asyncio.sleep(_REPORT_S)
            await link.report(self._disk.synced)

    async def _look(self, broker: Broker) -> None:
        """Copy the broker's tables at intervals, and publish how far behind the copy is."""
        while True:
            await asyncio.sleep(_TABLES_S)
            await self._copy_tables(broker)
            bounds = await log_bounds(self._calls, broker)
            await self._tell(is_connected=True, behind_bytes=max(0, bounds.end - self._disk.end))

    async def _sync_confirm(self) -> None:
        """Make the committed offset durable at intervals."""
        while True:
            await asyncio.sleep(self._settings.confirm_interval_ms / 1000)
            await self._thread.run(self._disk.make_confirm_durable)

    async def _copy_tables(self, broker: Broker) -> None:
        await self._copy_topics(broker)
        delays = await fetch_table(self._calls, broker, SlaveCode.GET_ALL_DELAY_OFFSET)
        await self._thread.run(self._disk.save_table, self._paths.delay_offsets, delays)
        offsets = await fetch_table(self._calls, broker, SlaveCode.GET_ALL_CONSUMER_OFFSET)
        await self._thread.run(self._disk.save_group_offsets, offsets)

    async def _copy_topics(self, broker: Broker) -> None:
        told = await fetch_table(self._calls, broker, SlaveCode.GET_ALL_TOPIC_CONFIG)
        table = {name: told[name] for name in ("dataVersion", "topicConfigTable") if name in told}
        await self._thread.run(self._disk.save_table, self._paths.topics, table)
        self._topics |= (await self._thread.run(load_topics, self._paths.topics)).keys()

    async def _tell(
        self, *, is_connected: bool, address: str = "", behind_bytes: int | None = None, problem: str = ""
    ) -> None:
        self.state = FollowedBroker(
            self._url.broker, address or self.state.address, is_connected, behind_bytes, problem, now_ms()
        )
        await self._thread.run(self._disk.publish, self.state)

    async def save_queue_offsets(self) -> None:
        """Save the next offsets of all queues, between two writes."""
        await self._thread.run(self._disk.save_queue_offsets)

    async def close(self) -> None:
        """Sync and close the files, after `run` has ended or was cancelled."""
        await self._thread.close(self._disk.close)
