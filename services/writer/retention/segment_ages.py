"""FileAges: the store time of the newest record of each sealed file of the log.

Each file is walked once in total, without checking body CRCs: up to the first record that is too new, and further from
there when that record has become old. A sealed file never changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tidemark.format.check import Checker, Crc
from tidemark.index.log_walk import LogWalk
from tidemark.store.mapped_file_queue import MappedFileQueue

_CHUNK_SIZE_BYTES = 1 << 20
# No checksum covers store times. A time this far in the future, with a lower time after it, counts as a damaged field.
_IMPLAUSIBLE_MS = 24 * 3_600_000


@dataclass
class _Walked:
    """The progress of the walk through one file."""

    position: int
    newest_ms: int | None = None
    last_ms: tuple[int, ...] = ()  # store times of the last two records so far


class FileAges:
    """The ages of files, for one thread. rest: called between two reads, so that appends are not slowed down."""

    def __init__(self, rest: Callable[[], object] = lambda: None) -> None:
        self._rest = rest
        self._walked: dict[int, _Walked] = {}

    def newest_ms(self, log: MappedFileQueue, start: int, *, oldest_kept_ms: int, now_ms: int) -> int | None:
        """Return the store time of the file's newest readable record; None if no record can be read.

        The walk stops early at a time of *oldest_kept_ms* or later, so the result may be lower than the newest time.
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
            return min(walked.last_ms)  # two such times: the clock was ahead, because times never decrease in a log
        return walked.newest_ms

    def forget_below(self, physical_offset: int) -> None:
        """Forget the files below *physical_offset*, which were deleted."""
        self._walked = {start: walked for start, walked in self._walked.items() if start >= physical_offset}
