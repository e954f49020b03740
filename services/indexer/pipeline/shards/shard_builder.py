"""ShardBuilder: one shard's files, position and marks during an epoch."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.index.log_walk import LogPart, LogWalk, nothing_at
from tidemark.index.rebuild_request import RebuildRequest, at, save_request
from tidemark.index.scan.scanned_log import ScannedLog
from tidemark.metrics.buckets import Buckets
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import Term
from tidemark.store.storage import Storage

from ..committed import CommittedOffset
from ..plan import EpochPlan
from .durable_marks import DurableMarks
from .expiry import Expiry
from .hand_over import HandOver
from .index_shard import IndexShard
from .queue_shard import QueueShard
from .rebuilding import request_path, take_request
from .shard import Shard


def executor_name(pid: int | None = None) -> str:
    """Return the executor of this task: its host and the process *pid*; None: the one that forked this process."""
    return f"{socket.gethostname()}/{pid or os.getppid()}"


_NO_END = (1 << 63) - 1  # greater than every physical offset


def _nothing_visible() -> list[int]:
    return Buckets("tidemark_append_visible_seconds").counts


@dataclass
class ShardProgress:
    """Progress of one shard in one epoch: a row for foreachBatch. Physical offsets; times in seconds.

    began_s, stopped_s  monotonic time at which the shard was acquired, and at which following ended; 0: never
    visible             records per bucket of time to visibility; only in the task's first row
    """

    follower: int
    shard: int
    start_offset: int = 0
    end_offset: int = 0
    records: int = 0
    chunks: int = 0
    damages: int = 0
    oddities: int = 0
    expired_files: int = 0
    rebuilt: int = 0  # rebuilt queues and runs of index files
    waited_s: float = 0.0
    held_s: float = 0.0
    began_s: float = 0.0
    stopped_s: float = 0.0
    visible: list[int] = field(default_factory=_nothing_visible)
    visible_s: float = 0.0  # sum of these times
    traced: str = ""  # JSON of `TracedMessages`, if traces are on
    term: int = 0
    executor: str = field(default_factory=executor_name)


def executors_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the executor of each shard from rows of progress, in the order of shards."""
    return [row["executor"] for row in sorted(rows, key=lambda row: int(row["shard"]))]


class ShardBuilder:
    """Builder of one shard; the caller holds the shard. position: the next physical offset to build."""

    def __init__(
        self,
        plan: EpochPlan,
        marks: Marks,
        committed: CommittedOffset,
        storage: Storage,
        progress: ShardProgress,
        hand_over: HandOver,
    ) -> None:
        number = progress.shard
        self.position = 0
        self.limit = _NO_END  # physical offset at which the next parts must end: the end of a rebuild
        self._plan = plan
        self._marks = marks
        self._number = number
        self._committed = committed
        self._hand_over = hand_over
        self._progress = progress
        self._index = IndexShard(plan, storage) if number == plan.shards else None
        self._shard: Shard = self._index or QueueShard(plan, number, storage)
        self._expiry = Expiry(plan, number, self._shard, storage)
        self._lock = threading.Lock()  # held during changes of the shard's files and of _visible
        self._durable = DurableMarks(
            marks,
            number,
            self._shard,
            interval_s=plan.durable_interval_ms / 1000,
            lock=self._lock,
            built=lambda: self._visible,
            wait_for_predecessor=self._wait_for_predecessor,
            confirm=hand_over.confirm,
        )
        self._began_at = self._visible = 0
        self._waiting = threading.Lock()
        self._predecessor_is_done = False
        self._is_passed_on = False
        self._storage = storage
        self._rebuild: RebuildRequest | None = None
        self._holds_parts = False

    def begin(self) -> None:
        """Take the shard over at its visible mark."""
        intended, visible = self._marks.intended(self._number), self._marks.visible(self._number)
        self._began_at = self._visible = visible
        if self._hand_over.was_taken:
            self._shard.disown()
        self.position = self._shard.begin(visible, intended=intended)
        if self._is_new(self._committed.term()):
            self._adopt_term()
        self._progress.term = self._marks.shard_term(self._number)
        self._progress.start_offset = self.position
        self._begin_rebuild()

    def _begin_rebuild(self) -> None:
        """Reset the position to the start of a requested rebuild. The visible mark stays."""
        if not request_path(self._plan, self._number).exists():
            return
        self._wait_for_predecessor()
        with self._lock:
            request = take_request(self._plan, self._number, self._marks, self._storage)
            assert request is not None and request.position is not None, "only a shard's holder removes its request"
            self._rebuild, self.limit = request, self._visible
            self.position = min(request.position, self._visible)
            self._shard.begin_rebuild(request, self.position)
            self._end_rebuild_if_done()

    def _end_rebuild_if_done(self) -> None:
        if self._rebuild is None or self.position < self.limit:
            return
        self._shard.take_sync()()
        self._storage.unlink(request_path(self._plan, self._number))
        self._shard.end_rebuild()
        self._progress.rebuilt += max(1, len(self._rebuild.queues))
        self._rebuild, self.limit = None, _NO_END

    def _wait_for_predecessor(self) -> None:
        """Block until everything that the previous holder built is durable.

        Until then no durable mark of this shard moves and nothing is cut. The previous holder syncs its own work
        concurrently. If it was killed, this task syncs it instead.
        """
        with self._waiting:
            if self._predecessor_is_done:
                return
            self._hand_over.wait_for_last_sync(self._number)
            self._plan.require_no_failed_sync()
            durable = self._marks.durable(self._number)
            if durable != self._began_at:
                with self._lock:
                    self._shard.sync_from(durable)
            self._predecessor_is_done = True

    def walk(self) -> LogWalk | ScannedLog:
        """Return the shard's walk over the log; it uses the plan's scanned ranges if there are any."""
        plan = self._plan
        walk = LogWalk(plan.open_log(), 0, self._shard.checker(), chunk_size_bytes=plan.chunk_size)
        if plan.scanned is None:
            return walk
        return ScannedLog(
            plan.scanned,
            walk,
            rows=self._index is None,
            keys=self._index is not None,
            shard=self._number if self._index is None else 0,
            shards=plan.shards,
        )

    def tend(self) -> None:
        """Run periodic work: start the sync thread, raise its failure (a failed sync is not retried), and expire."""
        self._restore_marks()
        self._durable.start()
        self._durable.raise_failure()
        self._progress.expired_files += self._expiry.look(self._lock)

    def _restore_marks(self) -> None:
        """Publish again what a previous holder, which hung between its last check and its store, has overwritten."""
        if self._marks.visible(self._number) < self._visible:
            self._hand_over.confirm()
            self._marks.publish(self._number, self._visible)
        if self._index is not None and self._progress.chunks and self._marks.is_index_synced:
            self._hand_over.confirm()
            self._marks.say_index_synced(False)

    def adopt_term(self, current: Term) -> bool:
        """Return True if the writer began a new term; first drop everything that it cut, before more is built."""
        if not self._is_new(current):
            return False
        self._adopt_term()
        self._progress.term = self._marks.shard_term(self._number)
        self._begin_rebuild()
        return True

    def _is_new(self, term: Term) -> bool:
        return term.number > self._marks.shard_term(self._number)

    def _adopt_term(self) -> None:
        self._wait_for_predecessor()
        with self._lock:
            self._hand_over.confirm()
            self._cut_for(self._committed.term())

    def _cut_for(self, term: Term) -> None:
        """Drop units or keys of bytes that recoveries since the shard's last term have cut; the rest stays visible.

        A killed builder may have built more than it published: the part of it that the log still holds is kept.
        """
        known = self._marks.shard_term(self._number)
        cut = self._committed.clamp(_NO_END, of_term=known) if known else term.recovered_end
        end = self._committed.clamp(self._marks.visible(self._number), of_term=known)
        resume = min(end, self._shard.resume_at(cut))
        self._marks.lower(self._number, resume)  # before the drop: otherwise a crash in between loses data
        self._shard.truncate(cut, self._marks)
        self._note_index_file()
        self._marks.adopt_term(self._number, term.number, end_offset=resume)
        self._visible = self._marks.visible(self._number)
        self.position = self._shard.begin(self._visible, intended=resume)

    def build(self, part: LogPart, *, more: bool = False) -> bool:
        """Build and publish *part*, which begins at the position. Return False if it is held back instead.

        more: further parts and then `settle` follow, so *part* may be held back.
        """
        with self._lock:
            is_held = self._holds_parts = more and self._shard.hold_back(part)
            if not is_held:
                self._publish(part)
            self.position = part.end_offset
            if self.position >= self.limit and not is_held:
                self._end_rebuild_if_done()
        self._durable.raise_failure()
        return not is_held

    def settle(self) -> None:
        """Build and publish the parts held back."""
        if self._holds_parts:
            self.build(nothing_at(self.position))

    def _publish(self, part: LogPart) -> None:
        self._hand_over.confirm()
        if self._index is not None:
            self._marks.say_index_synced(False)
        if self._rebuild is None:
            self._marks.intend(self._number, part.end_offset)
        self._progress.records += self._shard.apply(part)
        self._progress.chunks += 1
        self._hand_over.confirm()
        self._note_index_file()
        self._visible = max(self._visible, part.end_offset)
        # Otherwise another task has taken over since `confirm` and its mark is further.
        if part.end_offset > self._marks.visible(self._number):
            self._marks.publish(self._number, part.end_offset)

    def _note_index_file(self) -> None:
        if self._index is not None:
            self._marks.set_index_file(self._index.newest_file)

    # -- the epoch's end --------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Start a sync now, so that the last sync is small. Following continues."""
        self._durable.ask()

    def has_caught_up(self) -> bool:
        """Return True if the sync of `catch_up` is done."""
        return self._durable.has_caught_up()

    def pass_on(self) -> None:
        """Prepare for a waiting successor: `finish` leaves `index_synced` unset.

        Otherwise the successor would have to clear it durably before its first key.
        """
        self._is_passed_on = True
        # no chunk in this epoch, and caught up: all keys are synced
        if self._index is not None and not self._progress.chunks:
            self._marks.say_index_synced(True)

    def begin_to_finish(self) -> None:
        """Start to make everything durable, concurrently with other shards. The caller builds nothing more."""
        self._durable.begin_to_stop()

    def finish(self) -> None:
        """Make everything built durable."""
        self._durable.stop()
        if self._rebuild is not None:  # the rebuilt files are synced up to the position
            save_request(request_path(self._plan, self._number), at(self._rebuild, self.position), self._storage)
        if self._index is not None and not self._is_passed_on:
            self._marks.say_index_synced(True)
        self._close()

    def abandon(self) -> None:
        """Close the files without a sync or a move of marks: the epoch has failed, perhaps during a sync."""
        self._durable.abandon()
        self._close()

    def _close(self) -> None:
        self._progress.end_offset = self.position
        self._progress.damages = self._shard.damages
        self._progress.oddities = self._shard.oddities
        self._shard.close()
