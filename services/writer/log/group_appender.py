"""GroupAppender: appends a group of batches to the log's tail, recognises repeats, and runs tasks between batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from tidemark.errors import FlushFailedError, StoreError
from tidemark.store.mapped_file_queue import MappedFileQueue

from ..batch.batch import Batch
from ..dedup.duplicate_search import find_original
from ..dedup.recent_batches import RecentBatches
from .append_counts import AppendCounts
from .flusher import WrittenGroup
from .inbox import Task
from .log_tail import LogTail
from .queue_offsets import Snapshot


class GroupAppender:
    """Appends to *tail*. One thread at a time uses it.

    dead_end: returns the log's end at the deletion of a topic, 0 if the topic was never deleted.
    """

    def __init__(
        self,
        log: MappedFileQueue,
        tail: LogTail,
        window: RecentBatches,
        counts: AppendCounts,
        dead_end: Callable[[str], int],
    ) -> None:
        self.tail = tail
        self.written_offset = tail.position
        self._log = log
        self._window = window
        self._counts = counts
        self._dead_end = dead_end

    def append(self, items: Sequence[Batch | Task]) -> WrittenGroup:
        """Append the batches and run the tasks in their order. A batch that is refused gets its error.

        Raises FlushFailedError if the log must stop.
        """
        batches: list[Batch] = []
        for item in items:
            if isinstance(item, Batch):
                batches.append(item)
                try:
                    self._append(item)
                except FlushFailedError:
                    raise
                except StoreError as error:
                    item.error = error
            else:
                self.tail.write_out()
                item()
        self.tail.write_out()
        self._note_written(batches)
        return WrittenGroup(
            batches, self.written_offset, self.tail.take_dirty(), self.tail.store_timestamp, len(batches)
        )

    def _append(self, batch: Batch) -> None:
        if self._window.find(batch):
            self.tail.write_out()  # the original may still be in the buffer
            batch.appended = find_original(self._log, batch, self._window.find(batch), self._dead_end)
        if batch.appended is None:
            self.tail.append(batch)

    def _note_written(self, batches: list[Batch]) -> None:
        now_ns = time.time_ns()
        for batch in batches:
            if batch.appended is not None:
                batch.written_ns = now_ns
                self.written_offset = max(self.written_offset, batch.appended.end_offset)
        self._counts.count(batches)

    def snapshot(self) -> Snapshot:
        """Return the queue offsets at the log's end."""
        tail = self.tail
        return Snapshot(tail.position, tail.store_timestamp, tail.offsets.copy(), tail.record_starts.all())
