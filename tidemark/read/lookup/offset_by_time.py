"""Queue offset by store time (docs/format.md §14)."""

from __future__ import annotations

import enum
from typing import NamedTuple

from tidemark.format.record import HEAD, Magic, host_sizes
from tidemark.read.file_run import FileRun
from tidemark.read.queue_reader import QueueBounds, QueueReader

_BORN_HOST_AT = 48
_HEAD_SIZE = HEAD.itemsize + 24


class Boundary(enum.Enum):
    """Which message is requested for a time."""

    LOWER = "lower"  # the first one stored at or after it; if none, the end of the queue
    UPPER = "upper"  # the last one stored at or before it; if none, the first message


class TimeAnswer(NamedTuple):
    """A queue offset. store_timestamp: of the message there; None if no message meets the boundary."""

    offset: int
    store_timestamp: int | None


def store_time(log: FileRun, physical_offset: int) -> int:
    """Return the STORETIMESTAMP of the record at *physical_offset*; -1 if there is none."""
    head = log.read(physical_offset, _HEAD_SIZE)
    if len(head) < HEAD.itemsize or int.from_bytes(head[4:8], "big", signed=True) not in (Magic.V1, Magic.V2):
        return -1
    born_size, _ = host_sizes(int.from_bytes(head[36:40], "big", signed=True))
    at = _BORN_HOST_AT + born_size
    return int.from_bytes(head[at : at + 8], "big", signed=True)


class _Times:
    """Store times of a queue's units by number."""

    def __init__(self, queue: QueueReader, log: FileRun) -> None:
        self._queue = queue
        self._log = log

    def __call__(self, number: int) -> int:
        unit = self._queue.run.read(number, 1)
        if not len(unit):
            return -1
        if self._queue.is_batch:
            return int(unit["store_timestamp"][0])
        if not self._queue.run.is_live(unit)[0]:
            return -1
        return store_time(self._log, int(unit["physical_offset"][0]))

    def next_unit(self, number: int, end: int) -> int:
        """Return the next unit, skipping a gap in the queue's files at once."""
        return min(self._queue.run.at_or_after(number + 1, end)[0], end)


def unit_time(queue: QueueReader, log: FileRun, number: int) -> int:
    """Return the store time of the queue's unit *number*; -1 if there is no message."""
    return _Times(queue, log)(number)


def offset_by_time(
    queue: QueueReader, log: FileRun, bounds: QueueBounds, timestamp_ms: int, boundary: Boundary = Boundary.LOWER
) -> TimeAnswer:
    """Return the exact boundary among all visible messages, across all files."""
    times = _Times(queue, log)
    first, end = bounds.units
    if boundary is Boundary.LOWER:
        number = _first_unit(times, first, end, timestamp_ms)
        if number == end:
            return TimeAnswer(bounds.max_offset, None)
        return TimeAnswer(queue.offsets_of(number)[0], times(number))
    number = _first_unit(times, first, end, timestamp_ms + 1) - 1
    while number >= first and times(number) < 0:
        number -= 1
    if number < first:
        return TimeAnswer(bounds.min_offset, None)
    return TimeAnswer(queue.offsets_of(number)[-1], times(number))


def first_unit_at(queue: QueueReader, log: FileRun, low: int, high: int, timestamp_ms: int) -> int:
    """Return the first unit in [low, high) that is stored at or after *timestamp_ms*; *high* if there is none."""
    return _first_unit(_Times(queue, log), low, high, timestamp_ms)


def _first_unit(times: _Times, low: int, high: int, timestamp_ms: int) -> int:
    """Return the first unit in [low, high) that is stored at or after *timestamp_ms*; *high* if there is none."""
    end = high
    while low < high:
        number = middle = (low + high) // 2
        while number < end and (time := times(number)) < 0:  # pre-blank, damaged or missing
            number = times.next_unit(number, end)
        if number == end or time >= timestamp_ms:
            high = middle
        else:
            low = number + 1
    while low < end and times(low) < 0:
        low = times.next_unit(low, end)
    return low


def offset_by_time_as_broker(
    queue: QueueReader, log: FileRun, bounds: QueueBounds, timestamp_ms: int, boundary: Boundary = Boundary.LOWER
) -> int:
    """Return a broker's result, clamped to the queue's bounds: a BatchConsumeQueue has a peculiar bisection."""
    if bounds.units.first == bounds.units.end:
        return max(bounds.max_offset, 0)
    if not queue.is_batch:
        answer = offset_by_time(queue, log, bounds, timestamp_ms, boundary)
        return answer.offset
    raw = _batch_by_time(queue, _Times(queue, log), bounds, timestamp_ms, boundary)
    return min(max(raw, bounds.min_offset), bounds.max_offset)


def _batch_by_time(
    queue: QueueReader, times: _Times, bounds: QueueBounds, timestamp_ms: int, boundary: Boundary
) -> int:
    """Search exactly as format.md §14 says, in the live file's units from its first one, including expired ones."""
    files = [start for start in queue.run.file_starts() if start < bounds.units.end]
    start = next((start for start in reversed(files) if times(start) <= timestamp_ms), files[0])
    left, right = start, min(start + queue.run.units_a_file, bounds.units.end) - 1

    def base(number: int) -> int:
        return int(queue.run.unit(number)["base_offset"])

    if timestamp_ms >= times(right):
        return base(right)
    while left <= right:
        middle = (left + right) // 2
        time = times(middle)
        if middle == right:
            return base(middle) if time >= timestamp_ms else -1
        if middle == left:
            if time >= timestamp_ms:
                return base(middle)
            left = middle + 1
        elif boundary is Boundary.LOWER:
            left, right = (middle + 1, right) if time < timestamp_ms else (left, middle)
        else:
            left, right = (middle, right) if time <= timestamp_ms else (left, middle - 1)
    return -1
