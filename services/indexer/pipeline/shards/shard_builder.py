"""ShardBuilder: one shard's part in an epoch: its files, its position, its marks."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.errors import FlushFailedError
from tidemark.index.log_walk import LogPart, LogWalk, nothing_at
from tidemark.index.rebuild_request import RebuildRequest, at, save_request
from tidemark.index.scan.scanned_log import ScannedLog
from tidemark.metrics.buckets import Buckets
from tidemark.store.marks import Marks
from tidemark.store.originals.terms import Term
from tidemark.store.storage import Storage

from ..committed import CommittedOffset
from ..plan import EpochPlan
from .durable_marks import DurableMarks, Shard
from .expiry import Expiry
from .hand_over import HandOver
from .index_shard import IndexShard
from .queue_shard import QueueShard
from .rebuilding import request_path, take_request


def executor_name() -> str:
    """Which executor this task is in: its host, and the process that forks the tasks of one executor."""
    return f"{socket.gethostname()}/{os.getppid()}"


_NO_END = (1 << 63) - 1  # greater than every physical offset


def _nothing_visible() -> list[int]:
    return Buckets("tidemark_append_visible_seconds").counts


@dataclass
class Progress:
    """What was done for one shard in one epoch: a row for foreachBatch. Offsets physical, times in seconds.

    began_s, stopped_s  when the shard was taken, and followed no more: the machine's monotonic clock; 0 for never
    visible             how long records took to be visible, by bucket of the task's `Buckets`: in its first row only
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
    rebuilt: int = 0  # queues, and index files' runs, that were built again
    waited_s: float = 0.0
    held_s: float = 0.0
    began_s: float = 0.0
    stopped_s: float = 0.0
    visible: list[int] = field(default_factory=_nothing_visible)
    visible_s: float = 0.0  # sum of these times
    traced: str = ""  # what `TracedMessages` has found, where traces are on
    term: int = 0
    executor: str = field(default_factory=executor_name)


def executors_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Where each shard was built, in the order of shards: what rows of progress tell."""
    return [row["executor"] for row in sorted(rows, key=lambda row: int(row["shard"]))]


class ShardBuilder:
    """Builds one shard, for the holder of its lock. position: physical offset from which on it builds."""

    def __init__(
        self,
        plan: EpochPlan,
        marks: Marks,
        committed: CommittedOffset,
        storage: Storage,
        progress: Progress,
        hand_over: HandOver,
    ) -> None:
        number = progress.shard
        self.position = 0
        self._plan = plan
        self._marks = marks
        self._number = number
        self._committed = committed
        self._hand_over = hand_over
        self._progress = progress
        self._is_index = number == plan.shards
        self._shard: Shard = IndexShard(plan, storage) if self._is_index else QueueShard(plan, number, storage)
        self._expiry = Expiry(plan, number, self._shard, storage)
        self._lock = threading.Lock()  # whoever changes the shard, or what is built
        self._durable: DurableMarks | None = None
        self._began_at = self._visible = 0
        self._waiting = threading.Lock()
        self._predecessor_is_done = False
        self._is_passed_on = False
        self._interval_s = plan.durable_interval_ms / 1000
        self._storage = storage
        self._rebuild: RebuildRequest | None = None
        self._rebuild_end = 0  # where the shard was built up to when the rebuild began
        self._holds_parts = False

    def begin(self) -> None:
        """Go on where the one before has stopped."""
        intended, visible = self._marks.intended(self._number), self._marks.visible(self._number)
        self._began_at = self._visible = visible
        if self._hand_over.was_taken:
            self._shard.disown()
        self.position = self._shard.begin(visible, intended=intended)
        if self._is_new_term():
            self._adopt_term()
        self._progress.term = self._marks.shard_term(self._number)
        self._progress.start_offset = self.position
        self._durable = DurableMarks(
            self._marks,
            self._number,
            self._shard,
            interval_s=self._interval_s,
            lock=self._lock,
            built=lambda: self._visible,
            wait_for_predecessor=self._wait_for_predecessor,
            confirm=self._hand_over.confirm,
        )
        self._begin_rebuild()

    def _begin_rebuild(self) -> None:
        """Go back to where requested files are to be built again from. The visible mark stays."""
        if not request_path(self._plan, self._number).exists():
            return
        self._wait_for_predecessor()
        with self._lock:
            request = take_request(self._plan, self._number, self._marks, self._storage)
            assert request is not None and request.position is not None, "only a shard's holder removes its request"
            self._rebuild, self._rebuild_end = request, self._visible
            self.position = min(request.position, self._visible)
            self._shard.begin_rebuild(request, self.position)
            self._end_rebuild_if_done()

    @property
    def limit(self) -> int:
        """Physical offset up to which the next parts go: a rebuild ends at a part's end."""
        return _NO_END if self._rebuild is None else self._rebuild_end

    def _end_rebuild_if_done(self) -> None:
        if self._rebuild is None or self.position < self._rebuild_end:
            return
        self._shard.flush(self._shard.take_touched())
        self._storage.unlink(request_path(self._plan, self._number))
        self._shard.end_rebuild()
        self._progress.rebuilt += max(1, len(self._rebuild.queues))
        self._rebuild = None

    def _wait_for_predecessor(self) -> None:
        """Until what the holder before has built is durable: nothing of ours counts as that earlier, or is cut.

        It syncs that itself, beside us. Nobody does where it was killed: then it is for us.
        """
        with self._waiting:
            if self._predecessor_is_done:
                return
            self._hand_over.wait_for_last_sync(self._number)
            if self._plan.failed_flag.exists():
                raise FlushFailedError("the last sync has failed", path=str(self._plan.failed_flag))
            durable = self._marks.durable(self._number)
            if durable != self._began_at:
                with self._lock:
                    self._shard.sync_from(durable)
            self._predecessor_is_done = True

    @property
    def _begun(self) -> DurableMarks:
        assert self._durable is not None, "since `begin`"
        return self._durable

    def walk(self) -> LogWalk | ScannedLog:
        """The walk over the log that it needs: over what is scanned already, where the plan says so."""
        plan = self._plan
        walk = LogWalk(plan.open_log(), 0, self._shard.checker(), chunk_size_bytes=plan.chunk_size)
        if plan.scanned is None:
            return walk
        return ScannedLog(
            plan.scanned,
            walk,
            rows=not self._is_index,
            keys=self._is_index,
            shard=0 if self._is_index else self._number,
            shards=plan.shards,
        )

    def tend(self) -> None:
        """What is to be done beside building. raises what a sync failed with: nothing is tried again then"""
        self._begun.start()
        self._begun.raise_failure()
        self._progress.expired_files += self._expiry.look(self._lock)

    def adopt_term(self) -> bool:
        """On a new term of the writer: drop what it has cut, before anything is built on. Whether there was one."""
        if not self._is_new_term():
            return False
        self._adopt_term()
        self._progress.term = self._marks.shard_term(self._number)
        self._begin_rebuild()
        return True

    def _is_new_term(self) -> bool:
        return self._committed.term().number > self._marks.shard_term(self._number)

    def _adopt_term(self) -> None:
        self._wait_for_predecessor()
        with self._lock:
            self._hand_over.confirm()
            self._cut_for(self._committed.term())

    def _cut_for(self, term: Term) -> None:
        """Drop what the log's recoveries since the shard's last term have cut; everything below that stays visible.

        A killed builder may have built more than it published: what the log still holds of that is not dropped.
        """
        known = self._marks.shard_term(self._number)
        cut = self._committed.clamp(_NO_END, of_term=known) if known else term.recovered_end
        end = self._committed.clamp(self._marks.visible(self._number), of_term=known)
        resume = min(end, self._shard.resume_at(cut))
        self._marks.lower(self._number, resume)  # before anything is dropped: a crash in between would lose it
        self._shard.truncate(cut, self._marks)
        self._note_index_file()
        self._marks.adopt_term(self._number, term.number, end_offset=resume)
        self._visible = self._marks.visible(self._number)
        self.position = self._shard.begin(self._visible, intended=resume)

    def build(self, part: LogPart, *, more: bool = False) -> bool:
        """Build *part*, which begins at the position, and publish that; whether it did, or holds it back.

        more  there are further parts to come, and `settle` behind them: then it may be held back
        """
        with self._lock:
            is_held = self._holds_parts = more and self._shard.hold_back(part)
            if not is_held:
                self._publish(part)
            self.position = part.end_offset
            if not is_held:
                self._end_rebuild_if_done()
        self._begun.raise_failure()
        return not is_held

    def settle(self) -> None:
        """Build and publish what is held back."""
        if self._holds_parts:
            self.build(nothing_at(self.position))

    def _publish(self, part: LogPart) -> None:
        self._hand_over.confirm()
        if self._is_index:
            self._marks.say_index_synced(False)
        if self._rebuild is None:
            self._marks.intend(self._number, part.end_offset)
        self._progress.records += self._shard.apply(part)
        self._progress.chunks += 1
        self._note_index_file()
        self._hand_over.confirm()
        self._visible = max(self._visible, part.end_offset)
        # Else another has taken over since that look, and is farther.
        if part.end_offset > self._marks.visible(self._number):
            self._marks.publish(self._number, part.end_offset)

    def _note_index_file(self) -> None:
        if isinstance(self._shard, IndexShard):
            self._marks.set_index_file(self._shard.newest_file)

    # -- the epoch's end --------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Begin to sync now: the last sync gets small while we still follow."""
        self._begun.ask()

    def has_caught_up(self) -> bool:
        """Whether that is done."""
        return self._begun.has_caught_up()

    def pass_on(self) -> None:
        """Somebody waits who builds on, and would have to take back, before its first key, that all keys are synced."""
        self._is_passed_on = True
        if self._is_index and not self._progress.chunks:  # as it has caught up, all of it is synced
            self._marks.say_index_synced(True)

    def begin_to_finish(self) -> None:
        """Nothing is built any more: begin to make everything durable, beside other shards."""
        self._begun.begin_to_stop()

    def finish(self) -> None:
        """Make everything built durable."""
        self._begun.stop()
        if self._rebuild is not None:  # all of it is synced up to here
            save_request(request_path(self._plan, self._number), at(self._rebuild, self.position), self._storage)
        if self._is_index and not self._is_passed_on:
            self._marks.say_index_synced(True)
        self._close()

    def abandon(self) -> None:
        """Leave it as it is: the epoch has failed, perhaps at a sync."""
        if self._durable is not None:
            self._durable.abandon()
        self._close()

    def _close(self) -> None:
        self._progress.end_offset = self.position
        self._progress.damages = self._shard.damages
        self._progress.oddities = self._shard.oddities
        self._shard.close()
