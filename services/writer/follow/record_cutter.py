"""RecordCutter: cuts the bytes that a master sends into whole, checked records. A master cuts them anywhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidemark.errors import BrokerUnreachableError, CorruptMessageError, ReplicaDivergedError
from tidemark.format.check import Checker, CheckResult, Crc
from tidemark.format.dispatch_request import Outcome
from tidemark.format.queue_groups import number_queues, topic_of
from tidemark.format.record import BLANK_SIZE

from .ha_link import HaFrame


class Cut(NamedTuple):
    """Whole records of one file of the log, with the blank record at its end if that was reached.

    start            physical offset
    store_timestamp  of the last record, epoch milliseconds; 0 without a record
    topics           of the records
    damaged          number of records whose body does not match its CRC; they are copied as they are
    """

    start: int
    data: bytes
    store_timestamp: int
    topics: frozenset[str]
    damaged: int

    @property
    def end(self) -> int:
        """Physical offset after the records."""
        return self.start + len(self.data)


class RecordCutter:
    """The bytes of one connection. *overlap*: the end of our log, which the master sends once more, first.

    end: physical offset of our log's end. file_bytes: size of each file of the log.

    damage: the error of a record whose head is damaged; the records before it were returned, and no more will be
    """

    def __init__(self, end: int, overlap: bytes, file_bytes: int) -> None:
        self._end = end
        self._overlap = memoryview(overlap)
        # A master cannot be asked for offset 0. Its byte is the high one of the first record's size, which is 0.
        self._rest = b"" if end else b"\0"
        self._next = end - len(overlap) + len(self._rest)
        self._file_bytes = file_bytes
        self.damage: CorruptMessageError | None = None
        self._checker = Checker(crc=Crc.MARKS)

    @property
    def first(self) -> int:
        """The offset of the next byte that the master sends; at first, the one to ask for."""
        return self._next

    def add(self, frames: list[HaFrame]) -> list[Cut]:
        """Add received bytes; return the records that are whole now.

        Raises:
            BrokerUnreachableError: the master sends other bytes than those that follow.
            ReplicaDivergedError: the bytes that both logs should have differ.
        """
        parts: list[bytes | memoryview] = [self._rest]
        for offset, data in frames:
            if data and offset != self._next:
                raise BrokerUnreachableError(f"the broker sends its log from {offset}, but {self._next} was to come")
            self._next += len(data)
            parts.append(self._without_overlap(data))
        self._rest = b"".join(parts)
        cuts = []
        while (cut := self._take()) is not None:
            cuts.append(cut)
        return cuts

    def _without_overlap(self, data: bytes) -> bytes | memoryview:
        """Compare *data* with the end of our log; return the bytes after it."""
        if not self._overlap:
            return data
        common = min(len(data), len(self._overlap))
        ours, theirs = self._overlap[:common], memoryview(data)[:common]
        if ours != theirs:
            at = next(i for i in range(common) if ours[i] != theirs[i])
            offset = self._end - len(self._overlap) + at
            raise ReplicaDivergedError(
                f"this log and the broker's differ at physical offset {offset}: it is not a copy of that log any more. "
                "To begin again, follow the broker with an empty folder",
                physical_offset=offset,
            )
        self._overlap = self._overlap[common:]
        return memoryview(data)[common:]

    def _take(self) -> Cut | None:
        """Take the whole records at the start of the rest, up to the end of a file."""
        start = self._end
        file_left = self._file_bytes - start % self._file_bytes
        buffer = np.frombuffer(self._rest, np.uint8)[:file_left]
        if not buffer.size:
            return None
        result = self._checker.check(buffer, base_offset=start, file_end=file_left)
        size = self._whole_size(result, buffer.size, file_left)
        if not size:
            return None
        rows = result.requests
        topics = number_queues(buffer, rows).firsts
        cut = Cut(
            start,
            self._rest[:size],
            int(rows["store_timestamp"].max(initial=0)),
            frozenset(topic_of(buffer, rows[first]).decode("utf-8", "replace") for first in topics),
            result.faulty,
        )
        self._rest = self._rest[size:]
        self._end += size
        return cut

    def _whole_size(self, result: CheckResult, available: int, file_left: int) -> int:
        """Return the bytes that are whole records, with the blank record at the file's end once that is complete."""
        if result.outcome is Outcome.BLANK and available == file_left:
            return file_left
        is_damaged = result.outcome is Outcome.BAD or (
            result.outcome is Outcome.END and available - result.end_at >= BLANK_SIZE
        )
        if is_damaged and not result.end_at:
            self.damage = CorruptMessageError(
                f"the record at physical offset {self._end} of the broker's log is damaged: {result.fault.name}",
                physical_offset=self._end,
                reason=result.fault.name,
            )
        return result.end_at
