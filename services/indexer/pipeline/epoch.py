"""One task's epoch: hold its shards, follow the committed offset, and build and publish chunk by chunk.

Every chunk is checked, built and published before the next one is read. Exception: while there is more to build, the
keys of several chunks are written into the index together. Message bytes never leave this process; Spark receives one
row of progress per shard.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator, Sequence

from tidemark.errors import FlushFailedError, StoreContradictionError
from tidemark.index.log_walk import LogWalk
from tidemark.index.scan.scanned_log import ScannedLog
from tidemark.metrics.buckets import Buckets
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import machine_boot_id
from tidemark.store.storage import DiskStorage, Storage

from .committed import CommittedOffset
from .plan import EpochPlan
from .shards.hand_over import HandOver
from .shards.shard_builder import ShardBuilder, ShardProgress
from .traced_messages import TracedMessages

_ALIVE_INTERVAL_S = 1.0
_SHORT_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.25


def run_epoch(plan: EpochPlan, *, shard: int, follower: int, storage: Storage | None = None) -> ShardProgress:
    """Run an epoch of one shard, as `run_share` does."""
    (progress,) = run_share(plan, [shard], follower=follower, storage=storage)
    return progress


def run_share(
    plan: EpochPlan,
    shards: Sequence[int],
    *,
    follower: int,
    storage: Storage | None = None,
    hand_over: HandOver | None = None,
) -> list[ShardProgress]:
    """Acquire *shards*, follow until the epoch is over, release them, and return the progress of each.

    hand_over: None for one of Spark's followers

    Raises:
        StoreContradictionError: this is not the driver's machine.
        FlushFailedError: a sync failed, in this run or in an earlier run of the task. It is not retried: the next
            sync would succeed although pages never reached the disk.
    """
    _require_this_machine(plan)
    rows = [ShardProgress(follower, shard) for shard in shards]
    with contextlib.ExitStack() as at_the_end:
        hand_over = hand_over or HandOver(plan, shards, follower)
        at_the_end.callback(hand_over.release)
        # Constructed before the locks are acquired: work after that delays messages.
        epoch = _Epoch(plan, storage or DiskStorage(), hand_over, rows)
        at_the_end.callback(epoch.close)
        try:
            waited_s = hand_over.acquire()
            began = time.monotonic()
            plan.require_no_failed_sync()
            if not hand_over.is_stopping():
                epoch.run()
            for progress in rows:
                progress.waited_s, progress.began_s, progress.held_s = waited_s, began, time.monotonic() - began
        except FlushFailedError as error:
            plan.note_failed_sync(str(error))
            raise
    return rows


def _require_this_machine(plan: EpochPlan) -> None:
    """Refuse another machine than the driver's: it shares neither the mappings nor the boot that make them valid.

    Marks, terms and checkpoint are mapped files whose values hold until the machine restarts.
    """
    if plan.boot_id is not None and machine_boot_id() != plan.boot_id:
        raise StoreContradictionError(
            f"this executor ({socket.gethostname()}) is not on the driver's machine: all executors must run on it",
            path=str(plan.root),
        )


class _Epoch:
    """The state of one epoch, from before it waits for the locks until it releases them.

    Shards at the same position of the log share one walk over it.
    """

    def __init__(self, plan: EpochPlan, storage: Storage, hand_over: HandOver, rows: Sequence[ShardProgress]) -> None:
        assert len(rows) == 1 or plan.shards == 1, (
            "the walk of one of several queue shards lacks keys that the key index needs"
        )
        self._plan = plan
        self._storage = storage
        self._hand_over = hand_over
        self._rows = rows
        self._marks = Marks.open_to_write(plan.paths.marks, storage, shards=plan.all_shards, term=0)
        self._committed = CommittedOffset(plan)
        self._builders: list[ShardBuilder] = []
        self._walk: LogWalk | ScannedLog | None = None
        self._alive_at = 0.0
        self._unseen: list[tuple[int, int]] = []  # built parts: (end, store timestamp of the last record)
        self._visible = Buckets("tidemark_append_visible_seconds")
        builds_queues = rows[0].shard < plan.shards
        self._traced = TracedMessages(plan.traced_messages) if plan.traced_messages and builds_queues else None

    def run(self) -> None:
        """Follow until the epoch is over. Everything built is durable on return."""
        storage = self._hand_over.fenced(self._storage)
        for progress in self._rows:
            builder = ShardBuilder(self._plan, self._marks, self._committed, storage, progress, self._hand_over)
            self._builders.append(builder)
            builder.begin()
        self._follow()
        self._note_stop_times()
        if self._hand_over.is_awaited:
            for builder in self._builders:
                builder.pass_on()
            self._hand_over.pass_shards_on()
        for builder in self._builders:
            builder.begin_to_finish()
        while self._builders:
            self._builders[0].finish()
            self._builders.pop(0)

    def close(self) -> None:
        """Close everything; a builder that has not finished has failed and is abandoned."""
        for builder in self._builders:
            builder.abandon()
        if self._walk is not None:
            self._walk.close()
        self._committed.close()
        self._marks.close()

    def _follow(self) -> None:
        ending = False
        while True:
            self._say_alive()
            committed = self._committed.read()
            is_behind = self._position < committed
            if is_behind:
                self._build(committed)
            for builder in self._builders:  # after the build, so that it delays no message
                builder.tend()
            if not is_behind and not self._plan.epoch_ms:
                return
            if ending and all(builder.has_caught_up() for builder in self._builders):
                return
            if self._hand_over.is_stopping():
                return
            if not ending and self._is_over():
                ending = True
                for builder in self._builders:
                    builder.catch_up()
            term = self._committed.term()
            adopted = [builder.adopt_term(term) for builder in self._builders]
            if any(adopted):
                continue
            self._committed.wait(committed, self._pause_s(committed, ending=ending))

    @property
    def _position(self) -> int:
        """The least position of the builders. It is read several times per message, so it makes no calls."""
        least = self._builders[0].position
        for builder in self._builders:
            if builder.position < least:  # noqa: PLR1730 - the call is what this avoids
                least = builder.position
        return least

    def _is_over(self) -> bool:
        return bool(self._plan.epoch_ms) and self._hand_over.is_over()

    def _pause_s(self, committed: int, *, ending: bool) -> float:
        is_short = ending or self._position < committed  # the committed bytes cannot be read yet
        return _SHORT_PAUSE_S if is_short else min(self._hand_over.seconds_left, _LONGEST_PAUSE_S)

    def _build(self, committed: int) -> None:
        """Build up to *committed*, chunk by chunk, until the epoch is over."""
        self._build_parts(committed)
        for builder in self._builders:
            builder.settle()
        self._see_visible()

    def _build_parts(self, committed: int) -> None:
        while (position := self._position) < committed:
            here, limit = self._builders_at(position, committed)
            for part in self._walk_from(position).parts(limit=limit, floor=committed):
                began_ns = time.time_ns()
                more = part.end_offset < limit
                published = [builder.build(part, more=more) for builder in here]
                if len(part.requests):
                    self._unseen.append((part.end_offset, int(part.requests["store_timestamp"][-1])))
                if all(published):
                    self._see_visible()
                if self._traced is not None and self._builders[0] in here:
                    self._traced.look(part, began_ns)
                self._say_alive()
                if self._hand_over.is_stopping() or self._is_over():
                    return
            if self._position == position:
                return

    def _builders_at(self, position: int, committed: int) -> tuple[list[ShardBuilder], int]:
        """Return the builders at *position*, the least one, and the end of the parts that they build together."""
        here, limit = [], committed
        for builder in self._builders:
            if builder.position == position:
                here.append(builder)
                limit = min(limit, builder.limit)
            else:
                limit = min(limit, builder.position)
        return here, limit

    def _see_visible(self) -> None:
        """Record the time to visibility of parts below the watermark.

        Of several tasks, only the one that moves the watermark to its part's end records it.
        """
        if not self._unseen:
            return
        watermark, now_s = self._marks.watermark(), time.time()
        for end, stored_ms in self._unseen:
            if watermark >= end:
                self._visible.observe(max(0.0, now_s - stored_ms / 1000))
        self._unseen.clear()

    def _note_stop_times(self) -> None:
        for progress in self._rows:
            progress.stopped_s = time.monotonic()
        self._rows[0].visible, self._rows[0].visible_s = self._visible.counts, self._visible.total
        if self._traced is not None:
            self._rows[0].traced = self._traced.to_json()

    def _walk_from(self, position: int) -> LogWalk | ScannedLog:
        if self._walk is None:  # opened late: before the first commit there may be no log file
            self._walk = self._builders[0].walk()  # a queue shard's walk covers the index, too
        self._walk.position = position
        return self._walk

    def _say_alive(self) -> None:
        now = time.monotonic()
        if now >= self._alive_at:
            self._marks.say_alive()
            self._alive_at = now + _ALIVE_INTERVAL_S


def run_epochs(plan: EpochPlan, *, follower: int, values: Iterator[int]) -> Iterator[ShardProgress]:
    """Run an epoch for each planned row, whose number selects the share of the shards. Body of Spark's tasks."""
    for value in values:
        yield from run_share(plan, plan.shares[value % len(plan.shares)], follower=follower)
