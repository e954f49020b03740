"""One task's epoch: hold the shard, follow the committed offset, and build and publish chunk by chunk (design 4).

Every chunk is checked, built and published before the next is read. Message bytes never leave this process; what
goes to Spark is one row of progress.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.errors import FlushFailedError
from tidemark.index.log_walk import LogPart, LogWalk
from tidemark.store import wake
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage, Storage

from .committed import CommittedOffset
from .durable_marks import DurableMarks, Shard
from .expiry import Expiry
from .hand_over import HandOver
from .index_shard import IndexShard
from .plan import EpochPlan
from .queue_shard import QueueShard

_ALIVE_INTERVAL_S = 1.0


@dataclass
class Progress:
    """What one task did in one epoch: a row for foreachBatch. Offsets physical, times in seconds."""

    follower: int
    shard: int
    start_offset: int = 0
    end_offset: int = 0
    records: int = 0
    chunks: int = 0
    damages: int = 0
    oddities: int = 0
    expired_files: int = 0
    waited_s: float = 0.0
    held_s: float = 0.0
    term: int = 0


def run_epoch(plan: EpochPlan, *, shard: int, follower: int, storage: Storage | None = None) -> Progress:
    """Take the shard, follow until the epoch is over, let go.

    raises FlushFailedError, also when Spark starts the task again: after a failed sync nothing is tried again, because
    the next one would succeed over pages that never reached the disk
    """
    storage = storage or DiskStorage()
    progress = Progress(follower, shard)
    hand_over = HandOver(plan, shard, follower)
    try:
        progress.waited_s = hand_over.acquire()
        began = time.monotonic()
        if plan.failed_flag.exists():
            raise FlushFailedError("a sync has failed before", path=str(plan.failed_flag))
        if not hand_over.is_stopping():
            _Epoch(plan, shard, storage, hand_over, progress).run()
        progress.held_s = time.monotonic() - began
    except FlushFailedError:
        plan.failed_flag.touch()
        raise
    finally:
        hand_over.release()
    return progress


class _Epoch:
    """The state of one epoch, from taking the lock to letting go."""

    def __init__(self, plan: EpochPlan, shard: int, storage: Storage, hand_over: HandOver, progress: Progress) -> None:
        self._plan = plan
        self._number = shard
        self._hand_over = hand_over
        self._progress = progress
        self._marks = Marks.open_to_write(plan.paths.marks, storage, shards=plan.tasks, term=progress.term)
        self._committed = CommittedOffset(plan)
        self._is_index = shard == plan.shards
        self._shard: Shard = IndexShard(plan, storage) if self._is_index else QueueShard(plan, shard, storage)
        self._expiry = Expiry(plan, shard, self._shard, storage)
        self._position = 0
        self._walk: LogWalk | None = None
        self._wake_address = self._marks.count_word_address()
        self._alive_at = 0.0

    def run(self) -> None:
        """Follow until the epoch is over; everything built is durable then."""
        try:
            self._begin()
            durable = DurableMarks(
                self._marks, self._number, self._shard, interval_s=self._plan.durable_interval_ms / 1000
            )
            try:
                self._follow(durable)
            except BaseException:
                durable.abandon()
                raise
            durable.stop()
            if self._is_index:
                self._marks.say_index_synced(True)
        finally:
            self._finish()

    def _begin(self) -> None:
        intended, visible = self._marks.intended(self._number), self._marks.visible(self._number)
        if self._marks.durable(self._number) != visible:  # a killed builder's writes: nobody has synced them
            self._shard.sync_from(self._marks.durable(self._number))
        self._position = self._shard.begin(visible, intended=intended)
        self._adopt_term()
        self._progress.start_offset = self._position

    def _adopt_term(self) -> None:
        """On a new term of the writer: drop what it has cut, before anything is built on."""
        term = self._committed.term()
        self._progress.term = term.number
        known = self._marks.shard_term(self._number)
        if term.number <= known:
            return
        end = self._committed.clamp(self._marks.visible(self._number), of_term=known)
        cut = end if known else term.recovered_end
        resume = min(end, self._shard.resume_at(cut))
        self._marks.lower(self._number, resume)  # before anything is dropped: a crash in between would lose it
        self._shard.truncate(cut)
        self._note_index_file()
        self._marks.adopt_term(self._number, term.number, end_offset=resume)
        self._position = self._shard.begin(self._marks.visible(self._number), intended=resume)

    def _follow(self, durable: DurableMarks) -> None:
        ending = False
        while True:
            durable.raise_failure()
            self._say_alive()
            self._progress.expired_files += self._expiry.look(durable.lock)
            committed = self._committed.read()
            if self._position < committed:
                self._build(committed, durable)
            elif self._plan.epoch_ms == 0:
                return
            if ending and durable.has_caught_up():
                return
            if self._hand_over.is_stopping():
                return
            if not ending and self._plan.epoch_ms and self._hand_over.is_over():
                durable.ask()  # the last sync gets small while we still follow
                ending = True
            if self._committed.term().number > self._marks.shard_term(self._number):
                with durable.lock:
                    self._adopt_term()
                continue
            if self._position >= committed and self._plan.epoch_ms:
                timeout = 0.001 if ending else min(self._hand_over.seconds_left, 0.25)
                self._committed.wait(committed, timeout)

    def _build(self, committed: int, durable: DurableMarks) -> None:
        """Build what is committed, chunk by chunk, as long as the epoch may last."""
        if self._walk is None:  # not before something is committed: until then there may be no file
            checker = self._shard.checker()
            self._walk = LogWalk(self._plan.open_log(), 0, checker, chunk_size_bytes=self._plan.chunk_size)
        self._walk.position = self._position
        for part in self._walk.parts(limit=committed, floor=committed):
            with durable.lock:
                self._publish(part)
            self._say_alive()
            if self._hand_over.is_stopping() or (self._plan.epoch_ms and self._hand_over.is_over()):
                return
            durable.raise_failure()

    def _publish(self, part: LogPart) -> None:
        if self._is_index:
            self._marks.say_index_synced(False)
        self._marks.intend(self._number, part.end_offset)
        self._progress.records += self._shard.apply(part)
        self._progress.chunks += 1
        self._note_index_file()
        has_moved = self._marks.publish(self._number, part.end_offset)
        self._position = part.end_offset
        if has_moved:
            wake.wake(self._wake_address)

    def _note_index_file(self) -> None:
        if isinstance(self._shard, IndexShard):
            self._marks.set_index_file(self._shard.newest_file)

    def _say_alive(self) -> None:
        now = time.monotonic()
        if now >= self._alive_at:
            self._marks.say_alive()
            self._alive_at = now + _ALIVE_INTERVAL_S

    def _finish(self) -> None:
        self._progress.end_offset = self._position
        self._progress.damages = self._shard.damages
        self._progress.oddities = self._shard.oddities
        self._shard.close()
        if self._walk is not None:
            self._walk.close()
        self._committed.close()
        self._marks.close()


def run_epochs(plan: EpochPlan, *, follower: int, values: Iterator[int]) -> Iterator[Progress]:
    """The task's body: an epoch for each planned row, whose number says which shard."""
    for value in values:
        yield run_epoch(plan, shard=value % plan.tasks, follower=follower)
