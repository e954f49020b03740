"""Piece: whole batches of a writer's log, the unit in which replicas get it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidemark.errors import PieceIllegalError
from tidemark.format.record import BLANK_SIZE
from tidemark.store.batch_journal import BatchRange

from ..log.batch_journal import stretch_of


class Piece(NamedTuple):
    """Consecutive bytes of one file of the log.

    start    physical offset of the first byte
    data     whole batches; empty for a blank record alone
    batches  the stretches of *data*, with their CRC-32
    blank    bytes of the blank record that follows, up to the file's end; 0: none

    store_timestamp  of the last record, epoch milliseconds; 0 for a blank record alone
    """

    start: int
    data: bytes | memoryview
    batches: tuple[BatchRange, ...]
    blank: int = 0
    store_timestamp: int = 0

    @property
    def data_end(self) -> int:
        """Physical offset after the batches."""
        return self.start + len(self.data)

    @property
    def end(self) -> int:
        """Physical offset after the piece."""
        return self.data_end + self.blank

    def rest_from(self, start: int) -> Piece | None:
        """Return the rest from physical offset *start* on; None if no batch begins there."""
        if start == self.start:
            return self
        batches = tuple(batch for batch in self.batches if batch.start >= start)
        is_edge = batches[0].start == start if batches else self.blank > 0 and start == self.data_end
        if not is_edge:
            return None
        data = memoryview(self.data)[start - self.start :]
        return self._replace(start=start, data=data, batches=batches)

    def require_whole(self, *, log_end: int, file_end: int) -> None:
        """Check the piece against the replica's log, and its bytes against the CRC of each batch.

        log_end   physical offset at which the piece must start
        file_end  end of the file that covers log_end

        Raises:
            PieceIllegalError: the piece does not continue the log, or it was changed on its way.
        """
        self._require(self.start == log_end, f"it starts at {self.start}", log_end)
        most = file_end - BLANK_SIZE
        self._require(self.data_end <= most, f"its batches end at {self.data_end}, above {most} in this file", log_end)
        is_to_end = not self.blank or (self.blank >= BLANK_SIZE and self.end == file_end)
        self._require(is_to_end, f"its blank record of {self.blank} bytes does not end at {file_end}", log_end)
        self._require(bool(self.data or self.blank), "it is empty", log_end)
        at, data = self.start, np.frombuffer(self.data, np.uint8)
        for batch in self.batches:
            is_next = batch.start == at and at < batch.end <= self.data_end
            self._require(is_next, f"its batch {batch.start} to {batch.end} does not follow {at}", log_end)
            found = stretch_of(at, data[at - self.start : batch.end - self.start])
            self._require(found == batch, f"the CRC-32 of its batch {at} to {batch.end} is {found.crc:08x}", log_end)
            at = batch.end
        self._require(at == self.data_end, f"its batches end at {at}, its bytes at {self.data_end}", log_end)

    def _require(self, is_right: bool, fault: str, log_end: int) -> None:
        if not is_right:
            raise PieceIllegalError(
                f"the piece does not continue the log at {log_end}: {fault}",
                begin=self.start,
                end=self.end,
                log_end=log_end,
            )
