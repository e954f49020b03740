"""Scheduler: delivers delayed messages when they are due, each level in order, and saves its progress.

It sleeps until a level's next message is due. Messages above the watermark are not visible to it: while the log holds
delayed messages there, it checks again after the watermark has moved. If no message is waiting, it sleeps until one is
appended. A failure is logged and retried, and does not affect appends. docs/guarantees.md, "Delayed messages".
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import structlog

from tidemark.errors import StoreError
from tidemark.format.tags import MAX_DELAY_LEVEL
from tidemark.store.originals.delay_offsets import DelayOffsets, load_delay_offsets, save_delay_offsets
from tidemark.store.storage import Storage

from ..batch.batch import Batch
from ..batch.delayed_message import due_ms
from .delivery import DeliveryOutcome
from .level import RETRY_AFTER_FAILURE_MS, DelayLevel
from .schedule_reader import DueMessage, Look

log = structlog.get_logger()

_RETRY_MS = 1_000  # after a delivery that could not be stored
_FLUSH_PAUSE_MS = 100  # in async mode: between two checks whether the delivered messages are flushed
_LONGEST_SLEEP_MS = 60_000  # because the clock may be set meanwhile


class Queues(Protocol):
    """The part of DelayQueues that the scheduler uses."""

    def watermark(self) -> int: ...
    def look(self, level: int, queue_offset: int, now_ms: int) -> Look: ...


class Deliverer(Protocol):
    """The part of Delivery that the scheduler uses."""

    end_offset: int
    counts: dict[str, int]

    def is_flushed(self, end_offset: int) -> bool: ...
    async def deliver(self, messages: Sequence[DueMessage]) -> DeliveryOutcome: ...


class _Snapshot(NamedTuple):
    """Level → next queue offset, valid once the log is flushed up to *end*."""

    cursors: Mapping[int, int]
    end: int


class Scheduler:
    """The delivery task. Lives on the event loop; files are read and written in threads.

    next_offsets  the next queue offset of each level when the log ended at log_end: messages between the level's cursor
                  and it are waiting, and a cursor beyond it is from another log
    """

    def __init__(
        self,
        open_queues: Callable[[], Queues],
        delivery: Deliverer,
        path: Path,
        storage: Storage,
        *,
        next_offsets: Mapping[int, int],
        log_end: int,
        save_interval_ms: int,
    ) -> None:
        self._open_queues = open_queues
        self._delivery = delivery
        self._path = path
        self._storage = storage
        self._next_offsets = next_offsets
        self._save_interval_ms = save_interval_ms
        self._levels = [DelayLevel(number, log_end) for number in range(1, MAX_DELAY_LEVEL + 1)]
        self._queues: Queues | None = None
        self._saved: DelayOffsets | None = None  # the content of the file; None: not read yet
        self._save_s: float | None = None  # when to save, time.monotonic(); None: no cursor has changed
        self._snapshot: _Snapshot | None = None  # saved once the log is flushed up to its end
        self._changed = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task."""
        self._task = asyncio.create_task(self._run())

    def appended(self, batch: Batch) -> None:
        """Plan the delivery of *batch*, a delayed message that was appended."""
        assert batch.delay is not None and batch.appended is not None, "it was appended"
        level = self._levels[batch.delay.level - 1]
        level.end = max(level.end, batch.appended.end_offset)
        if level.look_ms is None:
            level.look_ms = due_ms(batch.delay, batch.appended.store_timestamp)
            self._changed.set()

    async def stop(self) -> None:
        """Finish the current delivery and stop."""
        self._closing = True
        self._changed.set()
        if self._task is not None:
            await self._task
        if any(self._delivery.counts.values()):
            log.info("scheduler_stopped", **self._delivery.counts)

    async def _run(self) -> None:
        while not self._closing:
            try:
                await self._work()
            except (StoreError, OSError) as error:
                log.error("scheduler_failed", error=str(error), retry_after_ms=RETRY_AFTER_FAILURE_MS)
            except Exception:  # a bug must not leave a silent, dead scheduler, nor end the appends
                log.exception("scheduler_failed", retry_after_ms=RETRY_AFTER_FAILURE_MS)
            await self._sleep(RETRY_AFTER_FAILURE_MS)

    async def _work(self) -> None:
        if self._saved is None:
            self._saved = await asyncio.to_thread(load_delay_offsets, self._path)
            self._take(self._saved)
        while not self._closing:
            now_ms = _now_ms()
            if self._queues is None and any(level.look_ms is not None for level in self._levels):
                self._queues = await asyncio.to_thread(self._open_queues)
            for level in self._levels:
                if level.is_time(now_ms) and not self._closing:
                    await self._serve(level, now_ms)
            if self._save_s is not None and self._save_s <= time.monotonic() and self._snapshot is None:
                self._snapshot = self._take_snapshot()
            if self._snapshot is not None and self._delivery.is_flushed(self._snapshot.end):
                await self._save(self._snapshot)
            await self._sleep(self._until_next_ms())

    def _take(self, saved: DelayOffsets) -> None:
        """Set the cursors to the saved offsets."""
        for level in self._levels:
            level.cursor, end = saved.table.get(level.number, 0), self._next_offsets.get(level.number, 0)
            if level.cursor > end:
                log.warning("delay_offset_corrected", level=level.number, before=level.cursor, after=end)
                self._move(level, end)
            elif level.cursor < end:
                level.look_ms = 0

    async def _serve(self, level: DelayLevel, now_ms: int) -> None:
        """Deliver due messages of one level: at most one look's worth, so that other levels have their turn."""
        try:
            await self._deliver(level, now_ms)
        except (StoreError, OSError) as error:
            log.error("delay_level_failed", level=level.number, error=str(error), retry_after_ms=RETRY_AFTER_FAILURE_MS)
            level.look_ms = now_ms + RETRY_AFTER_FAILURE_MS

    async def _deliver(self, level: DelayLevel, now_ms: int) -> None:
        assert self._queues is not None, "opened before"
        if level.is_blind and self._queues.watermark() == level.watermark:
            level.pause(now_ms)
            return
        look = await asyncio.to_thread(self._queues.look, level.number, level.cursor, now_ms)
        if look.min_offset > level.cursor:
            log.warning("delayed_messages_expired", level=level.number, before=level.cursor, after=look.min_offset)
            self._move(level, look.min_offset)
        outcome = await self._delivery.deliver(look.messages)
        if outcome.done < len(look.messages):
            self._move(level, look.messages[outcome.done].queue_offset)
            level.look_ms = _now_ms() + _RETRY_MS
            if outcome.error is not None and not self._closing:
                log.warning("delivery_postponed", level=level.number, error=str(outcome.error))
            return
        self._move(level, max(look.next_offset, level.cursor))
        level.plan(look, now_ms)

    def _move(self, level: DelayLevel, cursor: int) -> None:
        if cursor != level.cursor:
            level.cursor = cursor
            if self._save_s is None:
                self._save_s = time.monotonic() + self._save_interval_ms / 1000

    def _take_snapshot(self) -> _Snapshot:
        self._save_s = None
        known = () if self._saved is None else self._saved.table
        cursors = {level.number: level.cursor for level in self._levels if level.cursor or level.number in known}
        return _Snapshot(cursors, self._delivery.end_offset)

    async def save(self) -> None:
        """Save the cursors durably. Call it after `stop`, when the delivered messages are flushed."""
        if self._save_s is not None or self._snapshot is not None:
            await self._save(self._take_snapshot())

    async def _save(self, snapshot: _Snapshot) -> None:
        self._snapshot = None
        saved = self._saved
        assert saved is not None, "cursors move only after the file was read"
        offsets = DelayOffsets(saved.counter + 1, {**saved.table, **snapshot.cursors})
        try:
            await asyncio.to_thread(save_delay_offsets, self._path, offsets, self._storage)
        except (StoreError, OSError) as error:  # harmless: after a crash more deliveries are repeated, and recognised
            log.warning("delay_offsets_not_saved", error=str(error))
            self._save_s = time.monotonic() + self._save_interval_ms / 1000
            return
        self._saved = offsets

    def _until_next_ms(self) -> int | None:
        times = [level.look_ms for level in self._levels if level.look_ms is not None]
        if self._snapshot is not None:
            times.append(_now_ms() + _FLUSH_PAUSE_MS)
        elif self._save_s is not None:
            times.append(_now_ms() + int((self._save_s - time.monotonic()) * 1000) + 1)
        return max(min(times) - _now_ms(), 0) if times else None

    async def _sleep(self, duration_ms: int | None) -> None:
        if not self._closing:
            with contextlib.suppress(TimeoutError):
                seconds = None if duration_ms is None else min(duration_ms, _LONGEST_SLEEP_MS) / 1000
                await asyncio.wait_for(self._changed.wait(), seconds)
            self._changed.clear()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
