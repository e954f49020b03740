"""Ranges of a log that can be walked apart from each other: whole files, because every file begins with a record."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

from tidemark.store.mapped_file_queue import MappedFileQueue

RANGE_SIZE_BYTES = 256 << 20


class LogRange(NamedTuple):
    """Physical offsets; start is a record's edge, end is exclusive."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of log."""
        return self.end - self.start


class ScannedRanges(NamedTuple):
    """Ranges, ascending, and the folder that their scans lie in, or will."""

    folder: Path
    ranges: tuple[LogRange, ...]


def ranges_of(
    log: MappedFileQueue, start: int, end: int, *, size_bytes: int = RANGE_SIZE_BYTES
) -> tuple[LogRange, ...]:
    """[start, end) cut where files begin, into ranges of about *size_bytes*, at least a file each."""
    step = max(1, size_bytes // log.file_size) * log.file_size
    edges = [start, *range(log.file_start(start) + step, end, step), end]
    return tuple(LogRange(first, last) for first, last in itertools.pairwise(edges) if first < last)
