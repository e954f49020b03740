"""What a queue's files must hold, compared with what they hold.

Queue files are a pure function of the log, so the builders themselves say it: they build from nothing, on files whose
every write is compared instead of done.
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
    """The two kinds of queues."""

    size: int
    dtype: np.dtype[np.void]
    is_live: Callable[[NDArray[np.void]], NDArray[np.bool_]]


SIMPLE = UnitKind(consume_queue.UNIT_SIZE, consume_queue.UNIT, consume_queue.is_live)
BATCH = UnitKind(batch_consume_queue.UNIT_SIZE, batch_consume_queue.UNIT, batch_consume_queue.is_live)


class ExpectedFiles(MappedFileQueue):
    """A queue's files for a builder that begins with none.

    origin  byte at which a batch queue's first unit goes
    differ  told (byte, what is expected there, what is there) of each write that does not find its bytes
    """

    def __init__(self, actual: SeenFiles, *, origin: int, differ: Differ) -> None:
        self._actual = actual
        self._origin = origin
        self._differ = differ
        self._last: tuple[int, bytes] = (0, b"")
        super().__init__(actual.folder, actual.file_size)

    def refresh(self) -> None:
        """Nothing is on the disk."""

    @property
    def min_offset(self) -> int:
        """Where the first file starts, or where a batch queue begins."""
        return self._starts[0] if self._starts else self._origin

    @property
    def end(self) -> int:
        """Byte behind the last expected unit."""
        return self._last[0] + len(self._last[1])

    def create_file(self, start: int) -> None:
        """As if it were there."""
        self._starts = [*self._starts, start]

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Compare."""
        expected = bytes(data)
        self._last = (offset, expected)
        actual = self._actual.read_all(offset, len(expected))
        if actual != expected:
            self._differ(offset, expected, actual)

    def read(self, offset: int, length: int) -> bytes:
        """What was expected last: a builder looks at the unit before."""
        at = offset - self._last[0]
        assert 0 <= at <= len(self._last[1]) - length, "builders look at their last unit only"
        return self._last[1][at : at + length]


class Differences(NamedTuple):
    """Units that are not as expected. expected, actual: all units of the write; the masks: which of them."""

    expected: NDArray[np.void]
    actual: NDArray[np.void]
    differs: NDArray[np.bool_]
    is_zero: NDArray[np.bool_]


def differences(kind: UnitKind, expected: bytes, actual: bytes, *, with_extension: bool) -> Differences:
    """Compare unit by unit. with_extension: tags codes may be addresses in consumequeue_ext."""
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
    """(first, end) of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return [(int(first), int(end)) for first, end in edges.reshape(-1, 2)]


def open_queue(folder: Path, kind: UnitKind, default_size: int) -> SeenFiles:
    """The queue's files, in units of *kind*; *default_size* where there are none."""
    size = common_size(folder) or default_size
    return SeenFiles(folder, size - size % kind.size or kind.size)


def decode(kind: UnitKind, data: bytes) -> Any:
    """Units of *data*."""
    return np.frombuffer(data, kind.dtype, count=len(data) // kind.size)
