"""LogTail: where the log ends, and how a batch gets there: queue offset, room, roll with a blank record, write.

Adjacent batches are gathered in one reused buffer and go out in one pwrite: a *run*. A run that cannot be written leaves
no trace: position, queue offsets and window go back, and its bytes are made zero again. One thread owns all of this.
"""

from __future__ import annotations

import time

import numpy as np

from tidemark.errors import DiskFullError, FlushFailedError, NextOffsetMismatchError, UnavailableError
from tidemark.format.record import BLANK_SIZE, encode_blank

from .batch import Appended, Batch, QueueKey
from .disk_guard import DiskGuard
from .encode import Encoder, Place
from .idempotence import Window
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
        self._make_room(batch)
        queue_offset = self.offsets.next(batch.key)
        expected = batch.expected_next_offset
        if expected is not None and expected != queue_offset:
            raise NextOffsetMismatchError("the queue goes on elsewhere", expected=expected, actual=queue_offset)
        place = Place(queue_offset, self.position, max(self.store_timestamp, time.time_ns() // 1_000_000))
        size = self._encoder.size(batch, queue_offset)
        if self._filled + size > self._buffer.size:  # greater than a whole buffer: one of its own, written at once
            self._append_alone(batch, place, size)
            return
        positions = self._encoder.encode(batch, place, self._buffer[self._filled :])
        self._filled += size
        self._accept(batch, place, size, positions)

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
            count=batch.count,
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
        try:
            self._write(start, memoryview(self._buffer)[:filled])
        except UnavailableError as error:
            if isinstance(error, FlushFailedError):
                raise
            self.position = start
            for key, queue_offset in reversed(undo):
                self.offsets.set(key, queue_offset)
            for batch in run:
                self._window.forget(batch)
                batch.appended, batch.error = None, error
            if isinstance(error, DiskFullError):
                self._guard.saw_full_disk()

    def _write(self, offset: int, data: bytes | memoryview) -> None:
        """Write, or leave zeros and raise UnavailableError."""
        self._dirty.add(self._segments.log.file_start(offset))
        try:
            self._segments.log.write(offset, data)
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
