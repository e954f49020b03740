"""The walk over a CommitLog, part by part. Recovery uses it to find the log's end, the pipeline to read new records.

A bad record below the durable floor is damage: it is reported, and the walk continues after it. At or above the floor
it is the torn end of the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tidemark.errors import CorruptStoreError
from tidemark.format.check import Checker, CheckResult, find_next_record
from tidemark.format.dispatch_request import DISPATCH_REQUEST, Fault, Outcome, RequestArray, U8Array
from tidemark.index.part_keys import PartKeys, hash_rows
from tidemark.store.mapped_file_queue import MappedFileQueue

DEFAULT_CHUNK_SIZE_BYTES = 4 << 20  # two tasks that read a chunk twice stay within a processor's cache
_SMALL_SIZE_BYTES = 1 << 16  # up to here, a second buffer is used, which stays in the cache
_WINDOW_SIZE_BYTES = 64 << 20  # of the search after damage
_WINDOW_OVERLAP_BYTES = 16 << 20  # longer than any record


class Damage(NamedTuple):
    """An unreadable place in the log. size: bytes until the walk could continue; reason: a Fault's name."""

    physical_offset: int
    size: int
    reason: str


class LogPart(NamedTuple):
    """One part of the log. The walk owns the arrays; they are valid until the next part."""

    buffer: U8Array
    base_offset: int  # physical offset of buffer[0]
    requests: RequestArray  # records of the checker's shard; their positions count from the buffer's start
    damages: list[Damage]
    end_offset: int  # exclusive: everything below it is in this part or in an earlier one
    keys: PartKeys | None = None  # hashed by `tidemark.index.scan`: the buffer lacks their text

    def hashed_keys(self) -> PartKeys:
        """Return the hashed keys of this part: those of a scan, otherwise hash them now."""
        return hash_rows(self.buffer, self.requests) if self.keys is None else self.keys


class LogWalk:
    """A walk that starts at *position*. Afterwards `position` is the first byte not walked.

    The checker selects the shard and the CRC mode (Crc.MARKS yields rows with a fault for records with a damaged body).
    """

    def __init__(
        self, log: MappedFileQueue, position: int, checker: Checker, *, chunk_size_bytes: int = DEFAULT_CHUNK_SIZE_BYTES
    ) -> None:
        self._log = log
        self._checker = checker
        self._buffer = np.empty(chunk_size_bytes, np.uint8)
        self._small = np.empty(_SMALL_SIZE_BYTES, np.uint8)
        self._small_bytes = memoryview(self._small)  # type: ignore[arg-type]
        self.position = position

    def parts(self, *, limit: int, floor: int) -> Iterator[LogPart]:
        """Walk up to *limit* (exclusive), or to the log's end above *floor*. Empty ranges yield no part."""
        while self.position < limit:
            part = self._next_part(limit, floor)
            if part is None:
                return
            yield part

    def close(self) -> None:
        """Close the log's files."""
        self._log.close()

    def _next_part(self, limit: int, floor: int) -> LogPart | None:
        start = self.position
        file_start = self._log.file_start(start)
        file_end = file_start + self._log.file_size
        end = min(limit, file_end)
        buffer = self._read(start, end) if self._log.covers(start) else self._small[:0]
        if buffer.size == 0:
            self._log.refresh()
            if start < self._log.min_offset:
                return self._expired(start, limit)
            if not self._log.covers(start):
                return self._missing_file(start, end, floor)
            buffer = self._read(start, end)
            if buffer.size == 0:
                return None
        result = self._checker.check(buffer, base_offset=start, file_end=file_end - start)
        if _is_suspect(result, is_cut=start + buffer.size < end):
            # Read once more, to distinguish a read error from damage on disk.
            buffer = self._read(start, end)
            result = self._checker.check(buffer, base_offset=start, file_end=file_end - start)
        return self._take(buffer, start, result, end, file_end, floor)

    def _expired(self, start: int, limit: int) -> LogPart:
        """Return an empty part up to the log's minimum: retention has deleted the files below it."""
        self.position = end = min(self._log.min_offset, limit)
        return nothing_at(start)._replace(end_offset=end)

    def _missing_file(self, start: int, end: int, floor: int) -> LogPart | None:
        if start >= floor:
            return None
        self.position = end
        return LogPart(self._buffer[:0], start, _NO_ROWS, [Damage(start, end - start, "FILE_MISSING")], end)

    def _read(self, start: int, end: int) -> U8Array:
        wanted = min(end - start, self._buffer.size)
        if wanted <= _SMALL_SIZE_BYTES:
            target, view = self._small, self._small_bytes
        else:
            target, view = self._buffer, memoryview(self._buffer)  # type: ignore[arg-type]
        got = self._log.read_into(start, view[:wanted])
        if 0 < got < wanted:
            raise CorruptStoreError(
                f"a log file ends early: {got} of {wanted} bytes at {start} are there",
                path=str(self._log.folder),
            )
        return target[:got]

    def _take(
        self, buffer: U8Array, start: int, result: CheckResult, end: int, file_end: int, floor: int
    ) -> LogPart | None:
        stopped = start + result.end_at
        damages: list[Damage] = []
        match result.outcome:
            case Outcome.END | Outcome.FULL:
                next_position = stopped
            case Outcome.BLANK:
                next_position = file_end
            case Outcome.PARTIAL if start + buffer.size < end:  # cut by the buffer, not by the log's end
                if result.end_at == 0:
                    self._grow()
                    return self._next_part(end, floor)
                next_position = stopped
            case Outcome.PARTIAL | Outcome.BAD:
                if stopped >= floor:
                    self.position = stopped
                    return LogPart(buffer, start, result.requests, [], stopped) if result.records else None
                fault = result.fault if result.outcome is Outcome.BAD else Fault.LENGTH
                next_position = self._resume(stopped, min(end, floor), file_end)
                damages.append(Damage(stopped, next_position - stopped, fault.name))
            case _:
                raise AssertionError(result.outcome)
        self.position = next_position
        return LogPart(buffer, start, result.requests, damages, next_position)

    def _grow(self) -> None:
        """Double the buffer, because a record is longer."""
        self._buffer = np.empty(min(2 * self._buffer.size, self._log.file_size), np.uint8)

    def _resume(self, bad: int, end: int, file_end: int) -> int:
        """Return the start of the next valid record after *bad*; *end* if there is none."""
        at = bad + 1
        window = np.empty(min(_WINDOW_SIZE_BYTES, end - at), np.uint8)
        while at < end:
            got = self._log.read_into(at, memoryview(window)[: end - at])  # type: ignore[arg-type]
            found = find_next_record(window[:got], base_offset=at, file_end=file_end - at)
            if found is not None:
                return at + found
            if at + got >= end or got == 0:
                break
            at += got - _WINDOW_OVERLAP_BYTES  # a record may begin in one window and end in the next
        return end


def nothing_at(physical_offset: int) -> LogPart:
    """Return an empty part at *physical_offset*."""
    return LogPart(_NO_BYTES, physical_offset, _NO_ROWS, [], physical_offset)


def _is_suspect(result: CheckResult, *, is_cut: bool) -> bool:
    """Return True if *result* contains damage. is_cut: the buffer ends before the range that is walked."""
    wrong = result.outcome is Outcome.BAD or (result.outcome is Outcome.PARTIAL and not is_cut)
    return wrong or result.faulty > 0


_NO_ROWS: RequestArray = np.empty(0, DISPATCH_REQUEST)
_NO_BYTES: U8Array = np.empty(0, np.uint8)
