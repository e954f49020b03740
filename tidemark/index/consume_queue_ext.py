"""The extension of one queue for its owner: appends units, finds their end, truncates both ends (format.md §4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.format import consume_queue, consume_queue_ext
from tidemark.format.consume_queue_ext import END_MARK, END_MARK_ROOM, MIN_ADDRESS, UNIT, UNIT_SIZE, ExtUnit, is_unit
from tidemark.format.tags import EXT_ADDRESS_LIMIT
from tidemark.store.mapped_file_queue import MappedFileQueue

_UNITS_AT_ONCE = 50_000


class ConsumeQueueExt:
    """An extension's files as one sequence of units. touched: starts of files written since the owner cleared it."""

    def __init__(self, files: MappedFileQueue) -> None:
        self.files = files
        self.touched: set[int] = set()
        self._known_end: int | None = None  # None until it is searched or set

    @property
    def min_address(self) -> int:
        """Address of the first unit."""
        return consume_queue_ext.to_address(self.files.min_offset)

    @property
    def max_address(self) -> int:
        """Address after the last unit."""
        return consume_queue_ext.to_address(self._end)

    @property
    def _end(self) -> int:
        """Offset after the last unit of the newest file with a unit; without units, the start of the first file."""
        if self._known_end is None:
            self._known_end = self.files.min_offset
            for start in reversed(self.files.starts):
                if length := _length_of_units(self.files.read(start, self.files.file_size)):
                    self._known_end = start + length
                    break
        return self._known_end

    def get(self, address: int) -> ExtUnit | None:
        """Return the unit at *address*; None if the number is not an address or no unit is there."""
        offset = consume_queue_ext.to_offset(address)
        if offset is None or not self.files.min_offset <= offset < self._end:
            return None
        return self._unit_at(offset)

    def _unit_at(self, offset: int) -> ExtUnit | None:
        size = int.from_bytes(self.files.read(offset, 2), "big", signed=True)
        return consume_queue_ext.decode_unit(self.files.read(offset, size)) if size > 0 else None

    def append(self, *, tags_codes: NDArray[np.int64], store_timestamps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Append units without bitmaps and return their addresses. Bytes after the end may be overwritten."""
        addresses = np.empty(len(tags_codes), np.int64)
        done = 0
        while done < len(tags_codes):
            file_end = self.files.file_start(self._end) + self.files.file_size
            count = min((file_end - END_MARK_ROOM - self._end) // UNIT_SIZE, len(tags_codes) - done)
            if count <= 0:
                self._write(END_MARK)
                self._known_end = file_end
                continue
            part = slice(done, done + count)
            addresses[part] = MIN_ADDRESS + self._end + UNIT_SIZE * np.arange(count)
            self._write(
                consume_queue_ext.encode_units(tags_code=tags_codes[part], store_timestamp=store_timestamps[part])
            )
            self._known_end = self._end + count * UNIT_SIZE
            done += count
        return addresses

    def _write(self, data: bytes) -> None:
        self.files.write(self._end, data)
        self.touched.add(self.files.file_start(self._end))

    def continue_after(self, address: int | None) -> None:
        """Make the unit at *address* the last one, after which `append` continues; None: no unit stays."""
        offset = self.files.min_offset if address is None else consume_queue_ext.to_offset(address)
        unit = None if address is None or offset is None else self._unit_at(offset)
        if offset is not None and (unit is not None or address is None):
            self._known_end = offset + (unit.size if unit is not None else 0)

    def truncate_by_min_address(self, address: int) -> None:
        """Delete files that end at or before *address*, because no queue unit points there. The last file stays."""
        offset = consume_queue_ext.to_offset(address)
        for start in self.files.starts[:-1]:
            if offset is not None and start + self.files.file_size <= offset:
                self.files.delete_file(start)

    def truncate_by_max_address(self, address: int | None) -> None:
        """Make the unit at *address* the last one, and zero the bytes after it, durably. None: no unit stays."""
        self.continue_after(address)
        for start in [start for start in reversed(self.files.starts) if start >= self._end]:
            self.files.delete_file(start)
        if not self.files.starts:
            self._known_end = None
        elif self.files.covers(self._end):
            start = self.files.file_start(self._end)
            self.files.zero(self._end, start + self.files.file_size)
            self.files.flush(start)


def _length_of_units(data: bytes) -> int:
    """Return the length of the units at the start of a file's content. Units of equal size are checked together."""
    at = 0
    while (size := int.from_bytes(data[at : at + 2], "big", signed=True)) >= UNIT_SIZE:
        rows = np.frombuffer(data, np.uint8, (len(data) - at) // size * size, at).reshape(-1, size)
        heads = np.ascontiguousarray(rows[:, :UNIT_SIZE]).view(UNIT)[:, 0]
        wrong = np.flatnonzero(~is_unit(heads) | (heads["size"] != size))
        count = int(wrong[0]) if len(wrong) else len(heads)
        if count == 0:
            break
        at += count * size
    return at


def first_address(files: MappedFileQueue) -> int | None:
    """Return the first extension address among the units of a ConsumeQueue's first file; None if there is none."""
    units = consume_queue.decode_units(files.read(files.min_offset, files.file_size))
    codes = units["tags_code"][consume_queue.is_live(units)].astype(np.int64)
    addresses = codes[codes <= EXT_ADDRESS_LIMIT]
    return int(addresses[0]) if len(addresses) else None


def last_address(files: MappedFileQueue, end: int) -> int | None:
    """Return the last extension address among a ConsumeQueue's units below byte *end*; None if there is none."""
    while end > files.min_offset:
        start = max(files.file_start(end - 1), end - consume_queue.UNIT_SIZE * _UNITS_AT_ONCE)
        codes = consume_queue.decode_units(files.read(start, end - start))["tags_code"].astype(np.int64)
        addresses = codes[codes <= EXT_ADDRESS_LIMIT]
        if len(addresses):
            return int(addresses[-1])
        end = start
    return None
