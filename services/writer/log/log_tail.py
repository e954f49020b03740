"""LogTail: where the log ends, and how a batch gets there: queue offset, room, roll with a blank record, write.

Adjacent batches are gathered in one reused buffer and go out in one pwrite: a *run*. A run that cannot be written
leaves no trace: position, queue offsets and window go back, and its bytes are made zero again. One thread owns it.
"""

from __future__ import annotations

import time

import numpy as np

from tidemark.errors import DiskFullError, FlushFailedError, NextOffsetMismatchError, UnavailableError
from tidemark.format.record import BLANK_SIZE, encode_blank
from tidemark.store.batch_journal import Stretch

from ..batch.batch import Appended, Batch, QueueKey
from ..batch.record_encoder import Encoder, Place
from ..dedup.recent_batches import Window
from .batch_journal import BatchJournal, stretch_of
from .disk_guard import DiskGuard
from .page_preallocation import PagesAhead
from .queue_offsets import QueueOffsets
from .segments import Segments, as_unavailable


class LogTail:
    """The end of the log. Every byte of the CommitLog is written here."""

    def __init__(
        self,
        segments: Segments,
        encoder: Encoder,
        offsets: QueueOffsets,
        window: Window,
        guard: DiskGuard,
        journal: BatchJournal,
        pages: PagesAhead,
        *,
        position: int,
        store_timestamp: int,
        buffer_size: int,
    ) -> None:
        self.position = position  # the log's end, the buffer's content included
        self.store_timestamp = store_timestamp  # of the last record: none is older than the one before it
        self.offsets = offsets
        self.rolled_at: int | None = None  # where the last roll led to, until `take_roll`
        self._segments = segments
        self._encoder = encoder
        self._window = window
        self._guard = guard
        self._journal = journal
        self._pages = pages
        self._buffer = np.empty(buffer_size, np.uint8)
        self._filled = 0
        self._run: list[Batch] = []  # whose bytes are in the buffer
        self._undo: list[tuple[QueueKey, int]] = []  # queue offsets before them
        self._dirty: set[int] = set()  # starts of files written to and not yet handed over

    def append(self, batch: Batch) -> None:
        """Put *batch* at the end; it counts only after `write_out`.

        raises RejectedError or UnavailableError: it left no trace
        """
        self._guard.require_room()
        self._require_expected(batch)
        self._make_room(batch)
        self._require_expected(batch)  # again: what was in the buffer may not have been written
        queue_offset = self.offsets.next(batch.key)
        place = Place(queue_offset, self.position, max(self.store_timestamp, time.time_ns() // 1_000_000))
        size = self._encoder.size(batch, queue_offset)
        if self._filled + size > self._buffer.size:  # greater than a whole buffer: one of its own, written at once
            self._append_alone(batch, place, size)
            return
        positions = self._encoder.encode(batch, place, self._buffer[self._filled :])
        self._filled += size
        self._accept(batch, place, size, positions)

    def has_room_for(self, size: int) -> bool:
        """Whether *size* bytes fit into the file at hand. From any thread: then a moment old, as good as now."""
        return self._segments.end_of_file(self.position) - self.position >= size and self._segments.log.covers(
            self.position
        )

    def _require_expected(self, batch: Batch) -> None:
        expected = batch.expected_next_offset
        if expected is None or expected == self.offsets.next(batch.key):
            return
        self.write_out()  # the number that is told must be true
        actual = self.offsets.next(batch.key)
        if expected != actual:
            raise NextOffsetMismatchError("the queue goes on elsewhere", expected=expected, actual=actual)

    def _append_alone(self, batch: Batch, place: Place, size: int) -> None:
        usual, self._buffer = self._buffer, np.empty(size, np.uint8)
        try:
            positions = self._encoder.encode(batch, place, self._buffer)
            self._filled = size
            self._accept(batch, place, size, positions)
            self.write_out()
        finally:
            self._buffer = usual

    def _accept(self, batch: Batch, place: Place, size: int, positions: bytes) -> None:
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

    def _make_room(self, batch: Batch) -> None:
        """Roll when *batch* and a blank record do not fit in this file; empty the buffer when it does not fit there."""
        self._segments.ensure(self._segments.log.file_start(self.position))
        size = self._encoder.size(batch, self.offsets.next(batch.key))
        if self.position + size + BLANK_SIZE > self._segments.end_of_file(self.position):
            self.write_out()
            if self.position + size + BLANK_SIZE > self._segments.end_of_file(self.position):
                self._roll()
        elif self._filled + size > self._buffer.size:
            self.write_out()

    def _roll(self) -> None:
        """End this file with a blank record and go on in the next, which is there before the blank is."""
        end = self._segments.end_of_file(self.position)
        self._segments.ensure(end)
        self._write(self.position, encode_blank(end - self.position))
        self.position = end
        self.rolled_at = end

    def write_out(self) -> None:
        """Write what is gathered. When that fails, the batches of the run carry the error and the run never was.

        raises FlushFailedError when even their traces cannot be removed: stop then
        """
        if not self._run:
            return
        run, undo, filled = self._run, self._undo, self._filled
        self._run, self._undo, self._filled = [], [], 0
        start = self.position - filled
        stretches = [self._stretch(start, batch) for batch in run]
        try:
            self._tell(stretches)
            self._write(start, self._buffer[:filled].data)
        except UnavailableError as error:
            if isinstance(error, FlushFailedError):
                raise
            self._take_back(len(stretches))
            self.position = start
            for key, queue_offset in reversed(undo):
                self.offsets.set(key, queue_offset)
            for batch in run:
                self._window.forget(batch)
                batch.appended, batch.error = None, error
            if isinstance(error, DiskFullError):
                self._guard.saw_full_disk()

    def _stretch(self, start: int, batch: Batch) -> Stretch:
        assert batch.appended is not None, "it is in the buffer"
        first, end = batch.appended.physical_offset, batch.appended.end_offset
        return stretch_of(first, self._buffer[first - start : end - start])

    def _tell(self, stretches: list[Stretch]) -> None:
        try:
            self._journal.write(stretches)
        except DiskFullError:
            raise
        except OSError as error:
            raise as_unavailable(error) from error

    def _take_back(self, told: int) -> None:
        try:
            self._journal.forget(told)
        except (DiskFullError, OSError) as error:
            raise FlushFailedError(f"a failed write cannot be undone: {error}") from error

    def _write(self, offset: int, data: bytes | memoryview) -> None:
        """Write, or leave zeros and raise UnavailableError."""
        self._dirty.add(self._segments.log.file_start(offset))
        try:
            began = time.thread_time()
            self._segments.log.write(offset, data)
            self._pages.wrote(offset + len(data), len(data), time.thread_time() - began)
        except (DiskFullError, OSError) as error:
            failure = error if isinstance(error, DiskFullError) else as_unavailable(error)
            self._wipe(offset, offset + len(data))
            raise failure from error

    def _wipe(self, offset: int, end: int) -> None:
        try:
            self._segments.wipe(offset, end)
        except (DiskFullError, OSError) as error:
            raise FlushFailedError(
                f"a failed write cannot be undone: {error}", physical_offset=offset, end_offset=end
            ) from error

    def take_dirty(self) -> list[int]:
        """Starts of the files written to since the last call, ascending."""
        dirty, self._dirty = sorted(self._dirty), set()
        return dirty

    def take_roll(self) -> int | None:
        """Where a roll led to since the last call."""
        rolled, self.rolled_at = self.rolled_at, None
        return rolled
