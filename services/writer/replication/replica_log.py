"""ReplicaLog: writes what another log has to the log of a replica, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.format.record import encode_blank
from tidemark.store.batch_journal import BatchRange

from ..log.batch_journal import BatchJournal, stretch_of
from ..log.log_sync import LogSync
from ..log.segments import Segments, as_unavailable
from .piece import Piece


class ReplicaLog:
    """The end of a replica's log. One thread at a time uses it.

    begin_journal: makes a new journal of batches, for a log that ends at the given physical offset
    end: physical offset of the log's end, at first of a log that is synced
    """

    def __init__(self, segments: Segments, begin_journal: Callable[[int], BatchJournal], *, end: int) -> None:
        self.end = self.synced = end
        self._segments = segments
        self._begin_journal = begin_journal
        self._journal = begin_journal(end)
        self._log_sync = LogSync(segments.log)
        self._failure: FlushFailedError | None = None
        self._dirty: set[int] = set()  # starts of the files with bytes that are not synced

    def append(self, piece: Piece) -> None:
        """Write *piece*, which counts after the next `sync`. A piece that cannot be written leaves no trace.

        Raises:
            PieceIllegalError: it does not continue the log, or it was changed on its way.
            DiskFullError, DiskFailedError: it cannot be written.
            FlushFailedError: a failed write cannot be undone; the log must stop.
        """
        file_end = self._segments.end_of_file(self.end)
        piece.require_whole(log_end=self.end, file_end=file_end)
        written = [piece.data] if piece.data else []
        if piece.blank:
            written.append(encode_blank(piece.blank))
        self._write(list(piece.batches), written, end=piece.end)

    def append_records(self, data: bytes) -> None:
        """Write whole records of one file, and the blank record at its end if *data* has it. Raises as `append`."""
        stretch = stretch_of(self.end, np.frombuffer(data, np.uint8))
        self._write([stretch], [data], end=stretch.end)

    def _write(self, stretches: list[BatchRange], parts: list[bytes | memoryview], *, end: int) -> None:
        """Write *parts* at the log's end, which becomes *end*. stretches: their batches."""
        start = self.end
        file_end = self._segments.end_of_file(start)
        self._segments.ensure(file_end - self._segments.size)
        if end == file_end:
            self._segments.ensure(file_end)
        self._write_journal(stretches)
        self._dirty.add(file_end - self._segments.size)
        try:
            at = start
            for part in parts:
                self._segments.log.write(at, part)
                at += len(part)
        except (DiskFullError, OSError) as error:
            self._journal.take_back(len(stretches))
            raise self._segments.undo_write(start, end, error) from error
        self.end = end

    def _write_journal(self, stretches: list[BatchRange]) -> None:
        try:
            self._journal.write(stretches)
        except (DiskFullError, OSError) as error:
            self._journal.take_back(len(stretches))
            raise as_unavailable(error) from error

    def sync(self) -> int:
        """Make all pieces durable; return the log's end.

        Raises:
            FlushFailedError: that fails, or has failed before: the next sync would succeed without the lost bytes.
        """
        if self._failure is not None:
            raise self._failure
        if self.end > self.synced:
            try:
                self._log_sync.sync(self._journal, sorted(self._dirty), size=self.end - self.synced)
            except FlushFailedError as error:
                self._failure = error
                raise
            self._dirty.clear()
            self.synced = self.end
        return self.end

    def cut(self, point: int) -> None:
        """Remove everything from physical offset *point* on; the rest is durable then.

        Raises:
            FlushFailedError: that fails; the log must stop.
        """
        self.sync()  # first, because the new journal does not have the batches below *point*
        if point == self.end:
            return
        self._journal.close()
        self._journal = self._begin_journal(point)
        try:
            self._segments.wipe(point, self.end)
        except (DiskFullError, OSError) as error:
            raise FlushFailedError(f"the log cannot be cut at {point}: {error}", physical_offset=point) from error
        self.end = self.synced = point

    @property
    def is_empty(self) -> bool:
        """True if the log has no bytes: it is new, or begins where it ends."""
        starts = self._segments.log.starts
        return not starts or starts[0] == self.end

    def begin_at(self, offset: int) -> None:
        """Begin this empty log at *offset*, the start of a file. Raises OSError."""
        assert self.is_empty, self.end
        for start in list(self._segments.log.starts):
            self._segments.log.delete_file(start)
        self._journal.close()
        self._journal = self._begin_journal(offset)
        self.end = self.synced = offset

    def close(self) -> None:
        """Close the journal, and end the thread of the syncs."""
        self._log_sync.close()
        self._journal.close()
