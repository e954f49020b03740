"""ReplicaLog: writes a writer's pieces to the log of a replica, byte for byte."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.format.record import encode_blank

from ..log.batch_journal import BatchJournal
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
        self._segments.ensure(file_end - self._segments.size)
        if piece.blank:
            self._segments.ensure(file_end)
        self._write_journal(piece)
        self._dirty.add(file_end - self._segments.size)
        try:
            if piece.data:
                self._segments.log.write(piece.start, piece.data)
            if piece.blank:
                self._segments.log.write(piece.data_end, encode_blank(piece.blank))
        except (DiskFullError, OSError) as error:
            self._journal.take_back(len(piece.batches))
            raise self._segments.undo_write(piece.start, piece.end, error) from error
        self.end = piece.end

    def _write_journal(self, piece: Piece) -> None:
        try:
            self._journal.write(list(piece.batches))
        except (DiskFullError, OSError) as error:
            self._journal.take_back(len(piece.batches))
            raise as_unavailable(error) from error

    def sync(self) -> int:
        """Make all pieces durable; return the log's end. Raises FlushFailedError if that fails."""
        end, dirty = self.end, sorted(self._dirty)
        if end > self.synced:
            self._dirty = set()
            self._journal.flush()
            for start in dirty:
                self._segments.log.flush(start)
            self.synced = end
        return end

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

    def begin_at(self, offset: int) -> None:
        """Begin this empty log at *offset*, the start of a file. Raises OSError."""
        assert not self.end, self.end
        for start in list(self._segments.log.starts):
            self._segments.log.delete_file(start)
        self._journal.close()
        self._journal = self._begin_journal(offset)
        self.end = self.synced = offset

    def close(self) -> None:
        """Close the journal."""
        self._journal.close()
