"""CommitLog: keeps append ▸ flush ▸ commit ▸ answer in order.

Batches are submitted on the event loop. At the end of a turn the event loop itself appends the batches that arrived in
it, if they are small and the appender thread is idle; otherwise the appender thread takes all that have arrived. After
a turn with one batch, the next batch is not kept until the end of its turn, because it is probably alone again. Either
thread writes the group and passes it to the flusher. After the sync the group is committed, and one call back into the
event loop answers it. A batch with WAIT=false is answered after the write. In `async` mode the commit follows the write
at once. The log of a group's writer is committed when replication says so. After a failed flush the log accepts no
batches.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import structlog

from tidemark.errors import FlushFailedError, StoreClosedError, StoreError

from ..batch.batch import Batch, PutStatus
from ..config import FlushMode, WriterSettings
from .background_chores import BackgroundChores
from .committed_offset import Committed, PublishedOffsets
from .flusher import Flusher, GroupCommits, WrittenGroup
from .group_appender import GroupAppender
from .inbox import Inbox, Task
from .open_store import OpenStore
from .queue_offsets import Snapshot
from .replicated_log import ReplicatedLog
from .unanswered_batches import UnansweredBatches

log = structlog.get_logger()

_LITTLE_BYTES = 64 << 10  # the event loop appends up to this itself, which takes less time than to wake the thread
_SNAPSHOT_BYTES = 256 << 20  # of the log, after which the queue offsets are saved: a start reads what follows
_LITTLE_ROOM = 1 << 20  # required room in the file, more than _LITTLE_BYTES take as records: the loop creates no file


class CommitLog:
    """The log as the gRPC services use it. `submit`, `between` and the answers run on the event loop's thread."""

    def __init__(
        self,
        settings: WriterSettings,
        store: OpenStore,
        appender: GroupAppender,
        on_failure: Callable[[], None],
        replication: ReplicatedLog | None = None,
    ) -> None:
        self._segments = store.segments
        self._appender = appender
        self._published = PublishedOffsets(store.checkpoint, store.flushed)
        self._is_sync = settings.flush_mode is FlushMode.SYNC
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._replication = replication
        self.committed = Committed(store.checkpoint.committed_offset)
        self.failure: StoreError | None = None
        self._closing = False
        self._on_failure = on_failure
        self._waiting: set[asyncio.Future[Any]] = set()
        timeout_s, late = settings.sync_flush_timeout_ms / 1000 if self._is_sync else None, PutStatus.FLUSH_DISK_TIMEOUT
        if replication is not None and replication.timeout_s is not None:
            timeout_s, late = replication.timeout_s, PutStatus.FLUSH_SLAVE_TIMEOUT
        self._unanswered = UnansweredBatches(
            limit_bytes=settings.max_in_flight_bytes,
            retry_after_ms=settings.retry_after_ms,
            timeout_s=timeout_s,
            late=late,
        )
        self._inbox = Inbox()
        self._is_turn_planned = False
        self._turn_batches = 0  # submitted in this turn of the event loop
        self._was_lone = True  # the last turn with batches had one
        self._flusher = Flusher(
            store.segments.log,
            store.journal,
            flushed_offset=appender.written_offset,
            on_flushed=self._flushed,
            on_failure=self._fail,
            interval_s=None if self._is_sync else settings.flush_interval_ms / 1000,
        )
        self._chores = BackgroundChores(
            store.segments,
            store.make_committed_durable,
            store.storage,
            store.snapshot_path,
            interval_s=settings.confirm_interval_ms / 1000,
            flushed_offset=lambda: self._flusher.flushed_offset,
            on_failure=self._fail,
        )
        self._snapshot_at = store.recovered.end
        self._thread = threading.Thread(target=self._run, name="appender", daemon=True)
        if replication is not None:
            replication.attach(self._commit_groups)

    def start(self) -> None:
        """Start the threads that append and flush batches."""
        self._chores.start()
        self._flusher.start()
        self._thread.start()

    @property
    def written_offset(self) -> int:
        """Exclusive end of the written batches."""
        return self._appender.written_offset

    @property
    def flushed_offset(self) -> int:
        """Exclusive end of the synced bytes."""
        return self._flusher.flushed_offset

    @property
    def groups(self) -> GroupCommits:
        """Durations and sizes of group commits."""
        return self._flusher.groups

    @property
    def waiting(self) -> int:
        """Number of batches that wait to be appended. Safe from any thread."""
        return len(self._inbox)

    @property
    def in_flight_bytes(self) -> int:
        """Bytes of batches that are accepted and not yet answered. Safe from any thread."""
        return self._unanswered.bytes

    @property
    def segment_size(self) -> int:
        """Size of a CommitLog file in bytes."""
        return self._segments.size

    @property
    def end_offset(self) -> int:
        """The log's end. Call it on the appender thread, in a task of `between`."""
        return self._appender.tail.position

    @property
    def min_offset(self) -> int:
        """Physical offset at which the log begins."""
        return self._segments.log.min_offset

    # -- the event loop's side ------------------------------------------------------------------------------------

    def submit(self, batch: Batch) -> None:
        """Accept *batch*; `batch.answer` is called when it is done.

        Raises InFlightLimitError, StoreClosedError, NotLeaderError, InSyncReplicasNotEnoughError, or the error with
        which the log failed.
        """
        self._require_open()
        if self._replication is not None:
            self._replication.require_enough()
        self._unanswered.add(batch)
        self._turn_batches += 1
        if not self._is_turn_planned:
            self._is_turn_planned = True
            self._loop.call_soon(self._end_turn)
            if self._was_lone and self._has_room() and self._inbox.take_alone(batch, _LITTLE_BYTES):
                self._append_or_fail([batch])
                return
        self._inbox.add(batch)

    def _end_turn(self) -> None:
        """Append the waiting batches here if they are small, because to wake the thread would take longer."""
        self._is_turn_planned = False
        self._was_lone = self._turn_batches == 1
        self._turn_batches = 0
        if not len(self._inbox):
            return
        items = self._inbox.take_little(_LITTLE_BYTES) if self._has_room() else []
        if items:
            self._append_or_fail(items)
        else:
            self._inbox.wake()

    def _has_room(self) -> bool:
        """Return True if the current file has room for all batches that the event loop may append at once."""
        return self._appender.tail.has_room_for(_LITTLE_ROOM)

    def between(self, task: Task) -> None:
        """Run *task* on the appender thread, after all batches submitted before."""
        self._require_open()
        self._inbox.put(task)

    def _require_open(self) -> None:
        if self.failure is not None:
            raise self.failure
        if self._closing:
            raise StoreClosedError("the writer is shutting down")

    def watch(self, waiting: asyncio.Future[Any]) -> None:
        """Fail *waiting* if the log fails."""
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)

    def _complete(self, batches: list[Batch], committed: int) -> None:
        self._unanswered.complete(batches)
        self.committed.move(committed)

    async def close(self) -> None:
        """Refuse new batches, finish those that were accepted, and stop the threads."""
        self._closing = True
        self._inbox.close()
        await asyncio.to_thread(self._join)
        await asyncio.sleep(0)
        if self._replication is not None and self.failure is None:
            await self._unanswered.wait_until_all_are_answered()
        self._unanswered.close()

    def _join(self) -> None:
        self._thread.join()
        self._appender.tail.close()
        self._flusher.close()
        self._chores.close()

    def fail(self, error: StoreError) -> None:
        """Fail the log because of an error in background work. Safe from any thread."""
        self._fail(error)

    def ask_for_snapshot(self) -> None:
        """Schedule a save of the present queue offsets. Safe from any thread."""
        self._inbox.put(lambda: self._chores.save(self.snapshot()))

    def snapshot(self) -> Snapshot:
        """Return the queue offsets at the log's end. Call it on the appender thread, or after `close`."""
        return self._appender.snapshot()

    # -- appending, by the appender thread or the event loop -----------------------------------------------------------

    def _run(self) -> None:
        while self.failure is None and (items := self._inbox.take()) is not None:
            self._append_or_fail(items)

    def _append_or_fail(self, items: list[Batch | Task]) -> None:
        try:
            self._hand_over(self._appender.append(items))
        except FlushFailedError as error:
            self._fail(error)
        except Exception as error:  # a bug must not leave a silent, dead log
            log.exception("appender_failed")
            self._fail(FlushFailedError(f"the appender failed: {error!r}"))
        finally:
            self._inbox.give_back()

    def _hand_over(self, written: WrittenGroup) -> None:
        """Pass a written group on to the flusher, and answer the batches that do not wait for it."""
        if not self._is_sync:
            self._commit(written)
            written = WrittenGroup([], *written[1:])
        elif not all(batch.waits_for_flush for batch in written.batches):
            self._answer_written(written.batches)
            written = written._replace(batches=[batch for batch in written.batches if batch.waits_for_flush])
        self._flusher.hand_over(written)
        self._plan_background_work()

    def _plan_background_work(self) -> None:
        tail = self._appender.tail
        if tail.position - self._snapshot_at >= min(_SNAPSHOT_BYTES, self._segments.size):
            self._snapshot_at = tail.position
            self._chores.save(self.snapshot())
        file_end = self._segments.end_of_file(tail.position)
        if file_end - tail.position <= self._segments.size // 2:
            self._chores.prepare(file_end)

    def _answer_written(self, batches: list[Batch]) -> None:
        """Answer those of *batches* that do not wait for their flush. The flush follows all the same."""
        written = [batch for batch in batches if not batch.waits_for_flush]
        self._call_loop(lambda: self._unanswered.complete(written))

    # -- commit, by the flusher (sync), the appender (async), or as replication says ---------------------------------

    def _flushed(self, written: WrittenGroup) -> None:
        self._published.flush(written.end, store_timestamp=written.store_timestamp)
        if self._replication is not None:
            self._replication.flushed(written)
        elif self._is_sync:
            self._commit(written)
        else:
            self._chores.committed()  # a snapshot may wait for this flush

    def _commit(self, written: WrittenGroup) -> None:
        if self._published.commit(written.end):
            self._chores.committed()
        self._call_loop(lambda: self._complete(written.batches, written.end))

    def _commit_groups(self, end: int, groups: Sequence[WrittenGroup], status: PutStatus) -> None:
        if self._published.commit(end):
            self._chores.committed()
        batches = [batch for written in groups for batch in written.batches]
        self._call_loop(lambda: self._complete_with(status, batches, end))

    def _complete_with(self, status: PutStatus, batches: list[Batch], end: int) -> None:
        for batch in batches:
            if not batch.answered:
                batch.status = status
        self._complete(batches, end)

    def _fail(self, error: StoreError) -> None:
        """Fail the log for good: every waiting and later batch gets *error*. Safe from any thread."""
        if self.failure is None:
            self.failure = error
            log.error("commit_log_failed", error=error.message, **error.facts)
        self._inbox.discard()
        self._call_loop(self._answer_failure)

    def _answer_failure(self) -> None:
        assert self.failure is not None, "`_fail` sets the failure first"
        self._unanswered.fail(self.failure)
        for waiting in list(self._waiting):
            waiting.set_exception(self.failure)
        self._on_failure()

    def _call_loop(self, call: Callable[[], None]) -> None:
        if threading.get_ident() == self._loop_thread:
            call()
            return
        with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller waits
            self._loop.call_soon_threadsafe(call)
