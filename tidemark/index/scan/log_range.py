"""Ranges of a log that can be walked independently: whole files, because every file begins with a record."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import NamedTuple

from tidemark.store.mapped_file_queue import MappedFileQueue

RANGE_SIZE_BYTES = 256 << 20


class LogRange(NamedTuple):
    """A range of physical offsets. A record begins at start; end is exclusive."""

    start: int
    end: int

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.end - self.start


class ScannedRanges(NamedTuple):
    """Ranges, ascending, and the folder of their scans, which may not exist yet."""

    folder: Path
    ranges: tuple[LogRange, ...]


def ranges_of(
    log: MappedFileQueue, start: int, end: int, *, size_bytes: int = RANGE_SIZE_BYTES
) -> tuple[LogRange, ...]:
    """Split [start, end) at file boundaries into ranges of about *size_bytes*, at least one file each."""
    step = max(1, size_bytes // log.file_size) * log.file_size
    edges = [start, *range(log.file_start(start) + step, end, step), end]
    return tuple(LogRange(first, last) for first, last in itertools.pairwise(edges) if first < last)
