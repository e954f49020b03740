"""Compares a queue's files with their expected content.

Queue files are a pure function of the log. Therefore the builders produce the expected content: they start from an
empty queue, and each of their writes is compared with the files instead of written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.index.check.seen_files import SeenFiles, common_size
from tidemark.store.mapped_file_queue import MappedFileQueue

EXTENSION_ADDRESSES_BELOW = -(1 << 31)  # a tags code below it is an address in consumequeue_ext (docs/format.md §4)
Differ = Callable[[int, bytes, bytes], None]


class UnitKind(NamedTuple):
    """Unit layout of a queue type."""

    size: int
    dtype: np.dtype[np.void]
    is_live: Callable[[NDArray[np.void]], NDArray[np.bool_]]


SIMPLE = UnitKind(consume_queue.UNIT_SIZE, consume_queue.UNIT, consume_queue.is_live)
BATCH = UnitKind(batch_consume_queue.UNIT_SIZE, batch_consume_queue.UNIT, batch_consume_queue.is_live)


class ExpectedFiles(MappedFileQueue):
    """A queue's files for a builder that starts with none.

    origin  offset of a batch queue's first unit
    differ  called with (offset, expected bytes, actual bytes) for each write that differs
    """

    def __init__(self, actual: SeenFiles, *, origin: int, differ: Differ) -> None:
        self._actual = actual
        self._origin = origin
        self._differ = differ
        self._last: tuple[int, bytes] = (0, b"")
        super().__init__(actual.folder, actual.file_size)

    def refresh(self) -> None:
        """No-op: the builder must not see the files on disk."""

    @property
    def min_offset(self) -> int:
        """Start of the first file, or a batch queue's origin."""
        return self._starts[0] if self._starts else self._origin

    @property
    def end(self) -> int:
        """Exclusive end of the last expected unit."""
        return self._last[0] + len(self._last[1])

    def create_file(self, start: int) -> None:
        """Register a file at *start* without creating it."""
        self._starts = [*self._starts, start]

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Compare *data* with the files."""
        expected = bytes(data)
        self._last = (offset, expected)
        actual = self._actual.read_all(offset, len(expected))
        if actual != expected:
            self._differ(offset, expected, actual)

    def read(self, offset: int, length: int) -> bytes:
        """Return bytes of the last expected write: a builder reads only the previous unit."""
        at = offset - self._last[0]
        assert 0 <= at <= len(self._last[1]) - length, "builders read only their last write"
        return self._last[1][at : at + length]


class Differences(NamedTuple):
    """Comparison of one write. expected, actual: all units of the write; the other fields are masks over them."""

    expected: NDArray[np.void]
    actual: NDArray[np.void]
    differs: NDArray[np.bool_]
    is_zero: NDArray[np.bool_]


def differences(kind: UnitKind, expected: bytes, actual: bytes, *, with_extension: bool) -> Differences:
    """Compare units one by one. with_extension: tags codes may be addresses in consumequeue_ext."""
    there = np.frombuffer(actual, np.uint8).reshape(-1, kind.size)
    differs: NDArray[np.bool_] = np.any(np.frombuffer(expected, np.uint8).reshape(-1, kind.size) != there, axis=1)
    is_zero: NDArray[np.bool_] = ~np.any(there, axis=1)
    wanted, found = np.frombuffer(expected, kind.dtype), np.frombuffer(actual, kind.dtype)
    if with_extension:
        differs &= ~_is_extended(wanted, found)
    return Differences(wanted, found, differs, is_zero)


def _is_extended(wanted: NDArray[np.void], found: NDArray[np.void]) -> NDArray[np.bool_]:
    same_record = (wanted["physical_offset"] == found["physical_offset"]) & (
        wanted["message_size"] == found["message_size"]
    )
    extended: NDArray[np.bool_] = same_record & (found["tags_code"] < EXTENSION_ADDRESSES_BELOW)
    return extended


def runs_of(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return (first, end) of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def open_queue(folder: Path, kind: UnitKind, default_size: int) -> SeenFiles:
    """Open the queue's files, in units of *kind*; *default_size* if it has none."""
    size = common_size(folder) or default_size
    return SeenFiles(folder, size - size % kind.size or kind.size)


def decode(kind: UnitKind, data: bytes) -> Any:
    """Decode the whole units of *data*."""
    return np.frombuffer(data, kind.dtype, count=len(data) // kind.size)
