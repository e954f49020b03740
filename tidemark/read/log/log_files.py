"""The CommitLog's files as a map shows them: where each begins, its first store time, and where its blank end lies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidemark.format.record import BLANK, BLANK_SIZE, HEAD, MIN_RECORD_SIZE, Magic
from tidemark.read.file_run import FileRun
from tidemark.read.lookup.offset_by_time import store_time

_MAGIC = BLANK.pack(0, Magic.BLANK)[4:]
_FIRST_WINDOW_BYTES = 64 << 10
_WIDER = 16
_LAST_WINDOW_BYTES = 16 << 20  # longer than any record, and a blank end is shorter than the record that did not fit


class LogFile(NamedTuple):
    """One file. blank_at: physical offset of its blank record; None where it is not full, or none was found."""

    start: int
    first_store_ms: int | None
    blank_at: int | None


class LogFiles:
    """The files of *log*. Remembers blank ends, which are searched for once. Safe for several threads."""

    def __init__(self, log: FileRun) -> None:
        self._log = log
        self._blanks: dict[int, int] = {}

    def page(self, *, from_offset: int, limit: int, committed_offset: int) -> list[LogFile]:
        """At most *limit* files, ascending, from the one that holds *from_offset* on."""
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
    """Where the blank record of the full file at *start* begins; None when there is none.

    Searched from the file's end. A blank record tells how many bytes are left in its file, and nothing is written
    behind it: the last one that tells so is it, whatever bodies before it hold.
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
    """Where the records end whose heads can be seen from *start* on, a record's edge; looks at *most* of them.

    Heads alone: the last record may be torn.
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
