"""LogTail: appends batches at the log's end: assigns queue offsets, rolls to a new file with a blank record, writes.

Adjacent batches are gathered in one reused buffer and written with one pwrite: a *run*. A run that cannot be written
leaves no trace: position, queue offsets and window are restored, and its bytes are zeroed. One thread at a time uses
it.
"""

from __future__ import annotations

import time

import numpy as np

from tidemark.errors import DiskFullError, FlushFailedError, NextOffsetMismatchError, UnavailableError
from tidemark.format.record import BLANK_SIZE, encode_blank
from tidemark.store.batch_journal import BatchRange

from ..batch.batch import Appended, Batch, QueueKey
from ..batch.record_encoder import Encoder, RecordPosition
from ..dedup.recent_batches import RecentBatches
from .batch_journal import BatchJournal, stretch_of
from .disk_guard import DiskGuard
from .page_preallocation import LEAST_BYTES, PagePreallocation
from .queue_offsets import QueueOffsets
from .record_starts import RecordStarts
from .replicated_log import ReplicatedLog
from .segments import Segments, as_unavailable


class LogTail:
    """The end of the log. Every byte of the CommitLog is written here."""

    def __init__(
        self,
        segments: Segments,
        encoder: Encoder,
        offsets: QueueOffsets,
        window: RecentBatches,
        guard: DiskGuard,
        journal: BatchJournal,
        pages: PagePreallocation,
        record_starts: RecordStarts,
        *,
        position: int,
        store_timestamp: int,
        buffer_size: int,
        replication: ReplicatedLog | None = None,
    ) -> None:
        self.position = position  # the log's end, including the buffer's content
        self.store_timestamp = store_timestamp  # of the last record; store times never decrease
        self.offsets = offsets
        self.record_starts = record_starts
        self._replication = replication
        self._file_end = 0  # of the position's file; at most the position if that file may be missing
        self._segments = segments
        self._encoder = encoder
        self._window = window
        self._guard = guard
        self._journal = journal
        self._pages = pages
        self._buffer = np.empty(buffer_size, np.uint8)
        self._filled = 0
        self._run: list[Batch] = []  # the batches in the buffer
        self._undo: list[tuple[QueueKey, int]] = []  # the queue offset before each of them
        self._dirty: set[int] = set()  # starts of the files with writes that are not yet handed over

    def append(self, batch: Batch) -> None:
        """Append *batch* to the buffer; it counts only after `write_out`.

        Raises RejectedError or UnavailableError; *batch* leaves no trace then.
        """
        self._guard.require_room()
        self._require_expected(batch)
        size = self._make_room(batch)
        self._require_expected(batch)  # again, because the write of the buffer may have failed
        queue_offset = self.offsets.next(batch.key)
        place = RecordPosition(queue_offset, self.position, max(self.store_timestamp, time.time_ns() // 1_000_000))
        if self._filled + size > self._buffer.size:  # larger than the buffer: written at once from a buffer of its own
            self._append_alone(batch, place, size)
            return
        positions = self._encoder.encode(batch, place, self._buffer[self._filled :])
        self._filled += size
        self._accept(batch, place, size, positions)

    def has_room_for(self, size: int) -> bool:
        """Return True if *size* bytes fit into the current file. Safe from any thread; the result may be stale."""
        return self._file_end - self.position >= size

    def _require_expected(self, batch: Batch) -> None:
        expected = batch.expected_next_offset
        if expected is None or expected == self.offsets.next(batch.key):
            return
        self.write_out()  # a failed write restores the offset, so that the error reports the real next offset
        actual = self.offsets.next(batch.key)
        if expected != actual:
            raise NextOffsetMismatchError(
                f"expected_next_offset is {expected}, but the queue's next offset is {actual}",
                expected=expected,
                actual=actual,
            )

    def _append_alone(self, batch: Batch, place: RecordPosition, size: int) -> None:
        usual, self._buffer = self._buffer, np.empty(size, np.uint8)
        try:
            positions = self._encoder.encode(batch, place, self._buffer)
            self._filled = size
            self._accept(batch, place, size, positions)
            self.write_out()
        finally:
            self._buffer = usual

    def _accept(self, batch: Batch, place: RecordPosition, size: int, positions: bytes) -> None:
        self.position += size
        self.store_timestamp = place.store_timestamp
        self._undo.append((batch.key, place.queue_offset))
        self.offsets.set(batch.key, place.queue_offset + batch.count)
        self._window.add(batch, place.physical_offset)
        self._run.append(batch)
        batch.appended = Appended(
            queue_id=batch.key.queue_id,
            queue_offset=place.queue_offset,
            message_count=batch.count,
            physical_offset=place.physical_offset,
            end_offset=self.position,
            store_timestamp=place.store_timestamp,
            physical_offsets=positions,
        )

    def _make_room(self, batch: Batch) -> int:
        """Roll if *batch* and a blank record do not fit in the file; write the buffer if *batch* does not fit in it.

        Return the size of *batch* in the log.
        """
        if self.position >= self._file_end:
            self._open_file()
        size = self._size(batch)
        if self.position + size + BLANK_SIZE > self._file_end:
            self.write_out()
            size = self._size(batch)  # of an inner batch: its INNER_BASE may have changed, as the write may have failed
            if self.position + size + BLANK_SIZE > self._file_end:
                self._roll()
        elif self._filled + size > self._buffer.size:
            self.write_out()
            size = self._size(batch)
        return size

    def _size(self, batch: Batch) -> int:
        return self._encoder.size(batch, self.offsets.next(batch.key))

    def _open_file(self) -> None:
        """Create the file of the position, if it is missing."""
        end = self._segments.end_of_file(self.position)
        self._segments.ensure(end - self._segments.size)
        self._file_end = end

    def _roll(self) -> None:
        """End the file with a blank record and continue in the next file, which is created before the blank record."""
        end = self._segments.end_of_file(self.position)
        self._segments.ensure(end)
        self._write(self.position, encode_blank(end - self.position))
        if self._replication is not None:
            self._replication.rolled(self.position, end - self.position)
        self.position = end
        self._file_end = end + self._segments.size

    def write_out(self) -> None:
        """Write the buffer. If the write fails, it is undone and the batches of the run get the error.

        Raises FlushFailedError if it cannot be undone; the log must stop then.
        """
        if not self._run:
            return
        run, undo, filled = self._run, self._undo, self._filled
        self._run, self._undo, self._filled = [], [], 0
        start = self.position - filled
        try:
            stretches = self._write_journal(start, run)
            self._write(start, self._buffer[:filled].data)
        except UnavailableError as error:
            if isinstance(error, FlushFailedError):
                raise
            self._journal.take_back(len(run))
            self.position = start
            for key, queue_offset in reversed(undo):
                self.offsets.set(key, queue_offset)
            for batch in run:
                self._window.forget(batch)
                batch.appended, batch.error = None, error
            if isinstance(error, DiskFullError):
                self._guard.saw_full_disk()
        else:
            self.record_starts.note(start)
            if self._replication is not None:
                self._replication.wrote(start, self._buffer[:filled].data, stretches, self.store_timestamp)

    def _write_journal(self, start: int, run: list[Batch]) -> list[BatchRange]:
        """Record the stretches of the batches of *run*, which the buffer holds from *start*; return them."""
        stretches: list[BatchRange] = []
        for batch in run:
            assert batch.appended is not None, "a batch in the buffer has its location"
            first, end = batch.appended.physical_offset, batch.appended.end_offset
            stretches.append(stretch_of(first, self._buffer[first - start : end - start]))
        try:
            self._journal.write(stretches)
        except (DiskFullError, OSError) as error:
            raise as_unavailable(error) from error
        return stretches

    def _write(self, offset: int, data: bytes | memoryview) -> None:
        """Write *data* at *offset*. If that fails, zero the bytes and raise UnavailableError."""
        self._dirty.add(self._segments.log.file_start(offset))
        try:
            if len(data) < LEAST_BYTES:
                self._segments.log.write(offset, data)
            else:
                self._write_measured(offset, data)
        except (DiskFullError, OSError) as error:
            raise self._segments.undo_write(offset, offset + len(data), error) from error

    def _write_measured(self, offset: int, data: bytes | memoryview) -> None:
        began = time.thread_time()
        self._segments.log.write(offset, data)
        self._pages.wrote(offset + len(data), len(data), time.thread_time() - began)

    def take_dirty(self) -> list[int]:
        """Return the starts of the files written since the last call, ascending."""
        dirty, self._dirty = sorted(self._dirty), set()
        return dirty

    def close(self) -> None:
        """Stop the thread that prefetches pages. No append may follow."""
        self._pages.close()
