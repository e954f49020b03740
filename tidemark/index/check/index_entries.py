"""The index files of a checked store as one sequence of entries, in the order of their insertion."""

from __future__ import annotations

import bisect
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format import index_file
from tidemark.format.index_file import Header, entry_at
from tidemark.format.index_layout import ENTRY, ENTRY_SIZE, HEADER_SIZE


class SeenIndexFile:
    """One mapped index file. slots is None if it does not follow from the size: then its entries are unknown."""

    def __init__(self, path: Path, slots: int | None) -> None:
        self.path = path
        self._bytes = np.asarray(np.memmap(path, np.uint8, "r"))
        size = self._bytes.size
        if slots is None:
            slots = index_file.slots_of_size(size)
        is_right = slots is not None and size > entry_at(slots, 1) and (size - entry_at(slots, 0)) % ENTRY_SIZE == 0
        self.slots = slots if is_right else None
        header = index_file.decode_header(self._bytes[:HEADER_SIZE].tobytes()) if size >= HEADER_SIZE else Header()
        capacity = len(self.entries) if self.slots is not None else 1
        self.header = header._replace(index_count=min(header.index_count, capacity))
        self.is_counted = header.index_count <= capacity  # otherwise the header is wrong

    @property
    def entries(self) -> NDArray[np.void]:
        """All entries, used or not; entry 0 is never used."""
        assert self.slots is not None
        return self._bytes[entry_at(self.slots, 0) :].view(ENTRY)

    @property
    def count(self) -> int:
        """Number of entries in use."""
        return self.header.index_count - 1

    def broken_chain(self) -> tuple[int | None, int | None]:
        """See `index_file.find_broken_chain`."""
        assert self.slots is not None
        first = entry_at(self.slots, 0)
        return index_file.find_broken_chain(self._bytes[HEADER_SIZE:first], self._bytes[first:], self.header)

    def slots_in_use(self) -> int:
        """Return the number of slots that point at an entry."""
        assert self.slots is not None
        return int(np.count_nonzero(self._bytes[HEADER_SIZE : entry_at(self.slots, 0)].view(">i4")))


class Entries(NamedTuple):
    """Consecutive entries. files, numbers: the file index and the entry number of each."""

    hashes: NDArray[np.int64]
    physical_offsets: NDArray[np.int64]
    time_differences: NDArray[np.int64]
    files: NDArray[np.int64]
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.hashes)


class EntryRow:
    """All entries of all files, read once, from oldest to newest."""

    def __init__(self, files: list[SeenIndexFile]) -> None:
        self.files = files
        self._file = 0
        self._number = 1

    def skip_below(self, physical_offset: int) -> None:
        """Skip entries of records below *physical_offset*."""
        for i, file in enumerate(self.files):
            number = self._first_at(file, 1, physical_offset)
            if number <= file.count:
                self._file, self._number = i, number
                return
        self._file, self._number = len(self.files), 1

    @staticmethod
    def _first_at(file: SeenIndexFile, number: int, physical_offset: int) -> int:
        entries = file.entries
        numbers = range(number, file.count + 1)
        return number + bisect.bisect_left(numbers, physical_offset, key=lambda i: int(entries[i]["physical_offset"]))

    def next(self, count: int) -> Entries:
        """Return the next *count* entries, or fewer at the end, without moving past them."""
        return self._gather(self._stretches(count))

    def below(self, physical_offset: int) -> Entries:
        """Return the next entries up to the first one of a record at or above *physical_offset*."""
        stretches: list[tuple[int, int, int]] = []
        number = self._number
        for i in range(self._file, len(self.files)):
            end = self._first_at(self.files[i], number, physical_offset)
            stretches.append((i, number, end))
            if end <= self.files[i].count:
                break
            number = 1
        return self._gather(iter(stretches))

    def advance(self, count: int) -> None:
        """Move past the next *count* entries."""
        for file, _, end in self._stretches(count):
            self._file, self._number = file, end

    def _stretches(self, count: int) -> Iterator[tuple[int, int, int]]:
        """Yield (file, first, end) of the next *count* entries."""
        number = self._number
        for i in range(self._file, len(self.files)):
            if count <= 0:
                return
            end = min(number + count, self.files[i].count + 1)
            if end > number:
                yield i, number, end
            count -= end - number
            number = 1

    def _gather(self, stretches: Iterator[tuple[int, int, int]]) -> Entries:
        columns: list[list[NDArray[np.int64]]] = [[] for _ in Entries._fields]
        for file, first, end in stretches:
            entries = self.files[file].entries[first:end]
            for column, values in zip(
                columns,
                (
                    entries["key_hash"],
                    entries["physical_offset"],
                    entries["time_difference"],
                    np.full(end - first, file),
                    np.arange(first, end),
                ),
                strict=True,
            ):
                column.append(values.astype(np.int64))
        return Entries(*(np.concatenate([np.empty(0, np.int64), *parts]) for parts in columns))
