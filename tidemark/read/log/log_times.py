"""Evaluation of store times in the log: age of the oldest invisible record, and growth of the log."""

from __future__ import annotations

import bisect
from typing import NamedTuple

from tidemark.format.record import BLANK, BLANK_SIZE, Magic
from tidemark.read.file_run import FileRun
from tidemark.read.lookup.offset_by_time import store_time
from tidemark.read.watermark import Watermark


class Growth(NamedTuple):
    """Number of bytes appended between two times, epoch milliseconds."""

    size_bytes: int
    since_ms: int
    until_ms: int

    @property
    def bytes_per_s(self) -> float:
        """Mean growth in bytes per second."""
        return self.size_bytes * 1000 / (self.until_ms - self.since_ms)


def first_invisible_time(log: FileRun, watermark: Watermark) -> int | None:
    """Return the store time, epoch milliseconds, of the first committed record that is not visible yet.

    None if there is none or it cannot be read
    """
    position = watermark.physical_offset
    if watermark.lag_bytes > 0 and _is_blank(log, position):
        position += log.known.file_size - position % log.known.file_size
    if position >= watermark.committed_offset:
        return None
    return _or_none(store_time(log, position))


def growth(log: FileRun, end: int, *, now_ms: int, window_ms: int, least_ms: int) -> Growth | None:
    """Return the growth of the log below *end*, from the start of one of its files until now.

    The file is the newest one that began at least *window_ms* ago, otherwise the oldest. None if that is less than
    *least_ms* ago, which is too short for a rate, or if its first record cannot be read.
    """
    starts = [start for start in log.listing().starts if start < end]
    if not starts:
        return None
    old = bisect.bisect_right(starts, now_ms - window_ms, key=lambda start: store_time(log, start))
    start = starts[max(0, old - 1)]
    since_ms = store_time(log, start)
    if since_ms < 0 or now_ms - since_ms < max(1, least_ms):
        return None
    return Growth(end - start, since_ms, now_ms)


def _is_blank(log: FileRun, position: int) -> bool:
    head = log.read(position, BLANK_SIZE)
    return len(head) == BLANK_SIZE and BLANK.unpack(head)[1] == Magic.BLANK


def _or_none(time_ms: int) -> int | None:
    return None if time_ms < 0 else time_ms
