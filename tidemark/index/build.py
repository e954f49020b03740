"""Builds queue files from dispatched records (docs/format.md §4, §5), with one builder per queue.

A builder starts at its shard's mark. Units of records at or above the mark may exist already, if an earlier process
wrote them but did not publish them. They are written again with the same bytes.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.format.dispatch_request import RequestArray
from tidemark.format.record import MIN_RECORD_SIZE
from tidemark.index.consume_queue_ext import ConsumeQueueExt, last_address
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.store.mapped_file_queue import MappedFileQueue

UNIT_SIZE = consume_queue.UNIT_SIZE
_BLANKS_A_WRITE = 50_000
_GREATEST_PLACE = (1 << 63) - 1


class Oddity(NamedTuple):
    """A record that does not continue its queue's offsets.

    reason: QUEUE_HOLE, QUEUE_REPEAT, QUEUE_RESTART, QUEUE_OFFSET or BATCH_SIZE; the last two get no unit.
    """

    physical_offset: int
    size: int
    reason: str
    queue_offset: int


class QueueBuilder(Protocol):
    """Builder of one queue's files."""

    files: MappedFileQueue
    touched: set[int]  # starts of the files written since the owner last cleared it
    ext: ConsumeQueueExt | None

    def build(self, requests: RequestArray) -> list[Oddity]:
        """Write the units of *requests*, which follow everything built before in physical order."""


class ConsumeQueueBuilder:
    """Builder of a ConsumeQueue: unit n is at byte 20 n. ext: the extension for the tags codes, if enabled."""

    def __init__(self, files: MappedFileQueue, *, mark: int, ext: ConsumeQueueExt | None = None) -> None:
        self.files = files
        self.touched: set[int] = set()
        self.ext = ext
        end = find_simple_end(files, mark)
        self._next: int | None = None if self._is_fresh(end) else end // UNIT_SIZE
        if ext is not None:
            ext.continue_after(last_address(files, end))

    def _is_fresh(self, end: int) -> bool:
        """Return True if the queue has no unit. Its first file may exist, created by a builder that was then killed."""
        return not self.files.starts or (end == self.files.min_offset and len(self.files.starts) == 1)

    def build(self, requests: RequestArray) -> list[Oddity]:
        offsets = requests["queue_offset"]
        if self._next is not None and offsets[0] == self._next and _is_dense(offsets):
            self._append(requests)
            return []
        oddities: list[Oddity] = []
        for run in np.split(requests, np.flatnonzero(np.diff(offsets) != 1) + 1):
            oddities.extend(self._build_run(run))
        return oddities

    def append_units(self, queue_offset: int, units: memoryview) -> bool:
        """Write *units* if the queue's next offset is *queue_offset*; otherwise write nothing and return False."""
        if queue_offset != self._next:
            return False
        _write_units(self.files, self.touched, queue_offset * UNIT_SIZE, units)
        self._next = queue_offset + len(units) // UNIT_SIZE
        return True

    def _build_run(self, run: RequestArray) -> list[Oddity]:
        """Append a dense run, also after a hole or at a restart. Records below the queue's end are skipped."""
        first = int(run["queue_offset"][0])
        odd = run[0]
        place = (int(odd["physical_offset"]), int(odd["message_size"]))
        if self._next is None:
            if not 0 <= first <= (_GREATEST_PLACE - self.files.file_size) // UNIT_SIZE:  # no file can hold it
                rest = run[run["queue_offset"] >= 0] if first < 0 else run[:0]
                return [Oddity(*place, "QUEUE_OFFSET", first), *(self._build_run(rest) if len(rest) else [])]
            self._begin(first)
        assert self._next is not None
        if first == self._next:
            self._append(run)
            return []
        if first > self._next:
            if not self._is_plausible_hole(first, int(odd["physical_offset"])):
                return [Oddity(*place, "QUEUE_OFFSET", first)]
            oddity = Oddity(*place, "QUEUE_HOLE", first)
            self._fill(self._next, first)
            self._append(run)
            return [oddity]
        if first == 0:  # numbering restarted: a broker appends the record at the queue's end and ignores the next ones
            self._append(run[:1])
            return [Oddity(*place, "QUEUE_RESTART", first), *(self._build_run(run[1:]) if len(run) > 1 else [])]
        known = run["queue_offset"] < self._next
        rest = run[~known]
        return [Oddity(*place, "QUEUE_REPEAT", first), *(self._build_run(rest) if len(rest) else [])]

    def _begin(self, first: int) -> None:
        """Prepare the queue's first unit: fill its file before *first* with pre-blank units (docs/format.md §4)."""
        start = self.files.file_start(first * UNIT_SIZE)
        if self.files.starts and self.files.starts != [start]:
            self._next = self.files.min_offset // UNIT_SIZE
            return
        if not self.files.starts:
            self.files.create_file(start)
        self._fill(start // UNIT_SIZE, first)
        self._next = first

    def _is_plausible_hole(self, first: int, physical_offset: int) -> bool:
        """Return True if the log has room for the missing records before this one: offsets have no checksum."""
        assert self._next is not None
        if self._next * UNIT_SIZE <= self.files.min_offset:
            return False
        last = np.frombuffer(self.files.read((self._next - 1) * UNIT_SIZE, UNIT_SIZE), consume_queue.UNIT)[0]
        return first - self._next <= (physical_offset - int(last["physical_offset"])) // MIN_RECORD_SIZE

    def _fill(self, first: int, end: int) -> None:
        for at in range(first, end, _BLANKS_A_WRITE):
            units = consume_queue.PRE_BLANK_UNIT * min(_BLANKS_A_WRITE, end - at)
            _write_units(self.files, self.touched, at * UNIT_SIZE, units)
        self._next = end

    def _append(self, requests: RequestArray) -> None:
        assert self._next is not None
        tags_codes = requests["tags_code"]
        if self.ext is not None:
            tags_codes = self.ext.append(tags_codes=tags_codes, store_timestamps=requests["store_timestamp"])
        units = consume_queue.encode_units(
            physical_offset=requests["physical_offset"], message_size=requests["message_size"], tags_code=tags_codes
        )
        _write_units(self.files, self.touched, self._next * UNIT_SIZE, units)
        self._next += len(requests)


class BatchConsumeQueueBuilder:
    """Builder of a BatchConsumeQueue: units are in the order of their records, whatever their queue offsets."""

    def __init__(self, files: MappedFileQueue, *, mark: int) -> None:
        self.files = files
        self.touched: set[int] = set()
        self.ext: ConsumeQueueExt | None = None
        self._end = find_batch_end(files, mark)

    def build(self, requests: RequestArray) -> list[Oddity]:
        right = (requests["base_offset"] >= 0) & (requests["batch_size"] > 0)
        oddities = [
            Oddity(int(row["physical_offset"]), int(row["message_size"]), "BATCH_SIZE", int(row["base_offset"]))
            for row in requests[~right]
        ]
        requests = requests[right] if oddities else requests
        units = batch_consume_queue.encode_units(
            physical_offset=requests["physical_offset"],
            message_size=requests["message_size"],
            tags_code=requests["tags_code"],
            store_timestamp=requests["store_timestamp"],
            base_offset=requests["base_offset"],
            batch_size=requests["batch_size"],
        )
        _write_units(self.files, self.touched, self._end, units)
        self._end += len(units)
        return oddities


def _is_dense(offsets: np.ndarray[tuple[int], np.dtype[np.int64]]) -> bool:
    return bool(offsets[-1] - offsets[0] == len(offsets) - 1 and (np.diff(offsets) == 1).all())


def _write_units(files: MappedFileQueue, touched: set[int], at: int, units: bytes | memoryview) -> None:
    if units:
        files.write(at, units)
        size = files.file_size
        touched.update(range(at - at % size, at + len(units), size))
