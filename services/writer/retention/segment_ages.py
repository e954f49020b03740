"""FileAges: the store time of the newest record of each sealed file of the log.

Each file is walked once in all, as far as needed, without its bodies' CRC: until a record is seen that is too new, and
on from there when that one has become old. A sealed file never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import LogWalk
from tidemark.store.mapped_file_queue import MappedFileQueue

_CHUNK_SIZE_BYTES = 1 << 20
_IMPLAUSIBLE_MS = (
    24 * 3_600_000
)  # a time so far in the future, with less behind it, is a damaged field: nothing covers it


@dataclass
class _Walked:
    """How far one file is known."""

    position: int
    newest_ms: int | None = None
    last_ms: tuple[int, ...] = ()  # times of the last two records so far


class FileAges:
    """One thread's. rest: called between two reads, so that a cold file does not take the disk from the appends."""

    def __init__(self, rest: Callable[[], object] = lambda: None) -> None:
        self._rest = rest
        self._walked: dict[int, _Walked] = {}

    def newest_ms(self, log: MappedFileQueue, start: int, *, oldest_kept_ms: int, now_ms: int) -> int | None:
        """Store time of the newest readable record; a lesser one when that is at or above *oldest_kept_ms* already.

        None when no record of the file can be read.
        """
        walked = self._walked.setdefault(start, _Walked(start))
        end = start + log.file_size
        walk = LogWalk(log, walked.position, Checker(crc=Crc.OFF), chunk_size_bytes=_CHUNK_SIZE_BYTES)
        parts = walk.parts(limit=end, floor=end)
        while walked.newest_ms is None or walked.newest_ms < oldest_kept_ms:
            part = next(parts, None)
            if part is None:
                break
            times = part.requests["store_timestamp"]
            plausible = times[times <= now_ms + _IMPLAUSIBLE_MS]
            if plausible.size:
                newest_ms = int(plausible.max())
                walked.newest_ms = newest_ms if walked.newest_ms is None else max(walked.newest_ms, newest_ms)
            walked.last_ms = (*walked.last_ms, *times[-2:].tolist())[-2:]
            walked.position = walk.position
            self._rest()
        if walked.position >= end and len(walked.last_ms) == 2 and min(walked.last_ms) > now_ms + _IMPLAUSIBLE_MS:
            return min(walked.last_ms)  # no damaged field: the clock was ahead, and times never go back in a log
        return walked.newest_ms

    def forget_below(self, physical_offset: int) -> None:
        """Files below it are gone."""
        self._walked = {start: walked for start, walked in self._walked.items() if start >= physical_offset}
