"""LogFiles: the CommitLog's files with start, first store time and the place of the blank record at the end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidemark.format.record import BLANK, BLANK_SIZE, HEAD, MIN_RECORD_SIZE, Magic
from tidemark.read.file_run import FileRun
from tidemark.read.lookup.offset_by_time import store_time

_MAGIC = BLANK.pack(0, Magic.BLANK)[4:]
_FIRST_WINDOW_BYTES = 64 << 10
_WIDER = 16
_LAST_WINDOW_BYTES = 16 << 20  # longer than any record, hence than any blank record


class LogFile(NamedTuple):
    """One file. blank_at: physical offset of its blank record; None if the file is not full or has none."""

    start: int
    first_store_ms: int | None
    blank_at: int | None


class LogFiles:
    """Files of *log*. Caches the places of blank records. Thread-safe."""

    def __init__(self, log: FileRun) -> None:
        self._log = log
        self._blanks: dict[int, int] = {}

    def page(self, *, from_offset: int, limit: int, committed_offset: int) -> list[LogFile]:
        """Return at most *limit* files, ascending, starting with the one that holds *from_offset*."""
        listing = self._log.listing()
        behind = [start for start in listing.starts if start + listing.file_size > from_offset]
        return [self._file(start, committed_offset) for start in behind[:limit]]

    def _file(self, start: int, committed_offset: int) -> LogFile:
        time_ms = store_time(self._log, start)
        is_full = start + self._log.known.file_size <= committed_offset
        return LogFile(start, None if time_ms < 0 else time_ms, self._blank(start) if is_full else None)

    def _blank(self, start: int) -> int | None:
        if start not in self._blanks:
            found = find_blank(self._log, start)
            if found is None:
                return None
            self._blanks = {known: at for known, at in self._blanks.items() if known >= self._log.known.starts[0]}
            self._blanks[start] = found
        return self._blanks[start]


def find_blank(log: FileRun, start: int) -> int | None:
    """Return the physical offset of the blank record of the full file at *start*; None if there is none.

    The search goes backwards from the file's end. A blank record contains the number of remaining bytes of its file and
    is the last one, so the last match with the right number is the blank record, even if bodies contain similar bytes.
    """
    end = start + log.known.file_size
    window = _FIRST_WINDOW_BYTES
    while True:
        at = max(start, end - window)
        data = log.read(at, end - at)
        found = data.rfind(_MAGIC)
        while found >= 0:
            place = found - 4
            if place >= 0 and BLANK.unpack_from(data, place)[0] == end - at - place:
                return at + place
            found = data.rfind(_MAGIC, 0, found + len(_MAGIC) - 1)
        if at == start or window >= _LAST_WINDOW_BYTES or not data:
            return None
        window *= _WIDER


def written_end(log: FileRun, start: int, *, most: int = 10_000) -> int:
    """Return the end of the consecutive record heads from *start*, a record boundary; reads at most *most* heads.

    Only heads are checked: the last record may be torn.
    """
    at = start
    size = log.listing().file_size
    for _ in range(most if size else 0):
        head = log.read(at, HEAD.itemsize)
        if len(head) >= BLANK_SIZE and BLANK.unpack_from(head)[1] == Magic.BLANK:
            at += size - at % size
            continue
        if len(head) < HEAD.itemsize:
            break
        record = np.frombuffer(head, HEAD)[0]
        is_record = record["magic"] in (Magic.V1, Magic.V2) and record["physical_offset"] == at
        if not is_record or not MIN_RECORD_SIZE <= record["total_size"] <= size - at % size:
            break
        at += int(record["total_size"])
    return at
