"""Pieces from the files of the log, for a replica that is behind the pieces in memory."""

from __future__ import annotations

import numpy as np

from tidemark.errors import CorruptMessageError, OffsetTooSmallError
from tidemark.format.check import Checker, Crc
from tidemark.format.dispatch_request import Outcome
from tidemark.store.mapped_file_queue import MappedFileQueue

from ..log.batch_journal import stretch_of
from .piece import Piece

_SIZE_FIELD = 4


class StoredPieces:
    """Reads pieces of *log*, a view of its own. One thread at a time uses it.

    A piece's records count as one batch, because all of them are committed. They are checked, so that damage on the
    writer's disk does not spread. No file stays open after a read, because retention may delete it.
    """

    def __init__(self, log: MappedFileQueue) -> None:
        self._log = log
        self._checker = Checker(crc=Crc.STOPS)

    def piece(self, start: int, end: int, *, most_bytes: int) -> Piece:
        """Return the records from physical offset *start* on, at least one if there is any, up to *most_bytes*.

        end: physical offset up to which the log is committed, above *start*

        Raises:
            CorruptMessageError: the record at *start* is damaged.
            OffsetTooSmallError: its file was deleted.
        """
        try:
            return self._read(start, end, most_bytes)
        finally:
            self._log.close()

    def _read(self, start: int, end: int, most_bytes: int) -> Piece:
        if not self._log.covers(start):
            self._log.refresh()
        file_end = self._log.file_start(start) + self._log.file_size
        limit = min(end, file_end)
        piece = self._piece(start, min(limit, start + most_bytes), file_end)
        if piece is None:  # the first record is larger
            size = int.from_bytes(self._log.read(start, _SIZE_FIELD), "big")
            piece = self._piece(start, min(limit, start + size), file_end)
        if piece is None:
            self._log.refresh()
            if not self._log.covers(start):
                raise OffsetTooSmallError(
                    f"the log has no file for {start} any more", min_offset=self._log.min_offset, max_offset=end
                )
            raise CorruptMessageError(f"the record at {start} is not whole", physical_offset=start, reason="LENGTH")
        return piece

    def _piece(self, start: int, stop: int, file_end: int) -> Piece | None:
        """Return the whole records of [start, stop), and the blank record after them; None if there are none."""
        data = np.frombuffer(bytearray(self._log.read(start, stop - start)), np.uint8)
        found = self._checker.check(data, base_offset=start, file_end=file_end - start)
        blank = file_end - start - found.end_at if found.outcome is Outcome.BLANK else 0
        if found.end_at == 0 and not blank:
            if found.outcome is Outcome.BAD:
                raise CorruptMessageError(
                    f"the record at {start} is damaged: {found.fault.name}",
                    physical_offset=start,
                    reason=found.fault.name,
                )
            return None
        records = data[: found.end_at]
        batches = (stretch_of(start, records),) if found.end_at else ()
        timestamp = int(found.requests["store_timestamp"][-1]) if found.end_at else 0
        return Piece(start, records.data, batches, blank, timestamp)
