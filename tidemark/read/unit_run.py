"""UnitRun: units of one queue by number, and the visible ones: from the log's minimum up to the watermark.

Unit n is stored at byte n · unit size of the queue's files. Units ascend by physical offset; pre-blank units, which
fill a queue's head and its holes, are skipped. After the visible end there may be zero bytes, unpublished units, and in
an attached store units of records that were truncated from the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import OffsetTooSmallError
from tidemark.format import batch_consume_queue, consume_queue
from tidemark.format.reading import find_end, visible_run
from tidemark.read.cached import acquire
from tidemark.read.file_run import FileRange, FileRun, StrPath
from tidemark.read.look import found_in_look, look_again, note_found
from tidemark.read.watermark import Watermark
from tidemark.store.halving import nearer_half

_FIRST_LOOK = 128  # units of the first read to find a queue's new end; doubled while all are visible
_MOST_UNITS = 65_536
_HEAD_BYTES = 8192  # of a file, read at once to find the end of its units: two pages, enough for short queues
_PROBED = 128  # units that are read at once when bisection has come so close to the end

_NO_LIMIT = (1 << 63) - 1

_TermAndEnd = tuple[int, int]
_NOT_SEEN: _TermAndEnd = (-1, -1)

UnitArray = NDArray[np.void]
_NONE: dict[bool, UnitArray] = {
    batch: np.empty(0, module.UNIT) for batch, module in ((False, consume_queue), (True, batch_consume_queue))
}
IsStale = Callable[[int, UnitArray], bool]  # (number, unit): the log has no such record there
IsTrue = Callable[[int, UnitArray], bool]  # (number, unit): it points at its own record


class UnitsGoneError(OffsetTooSmallError):
    """Units within the given bounds have expired; determine the bounds again."""


class VisibleUnits(NamedTuple):
    """Numbers of the readable units of a queue: first ≤ n < end."""

    first: int
    end: int


class UnitRun:
    """Units of one queue's files. Thread-safe.

    is_stale  check of the last visible unit in an attached store, because a broker leaves old units after the end
    is_true   check of a unit after a damaged one: the queue ends before the damage only if no valid unit follows
    """

    def __init__(
        self, folder: StrPath, *, batch: bool, is_stale: IsStale | None = None, is_true: IsTrue | None = None
    ) -> None:
        self._is_stale = is_stale
        self._is_true = is_true
        self._files = FileRun(folder, is_lazy=True)
        self._unit = batch_consume_queue.UNIT if batch else consume_queue.UNIT
        self.unit_size = self._unit.itemsize  # bytes
        self._none = _NONE[batch]
        self._is_live = batch_consume_queue.is_live if batch else consume_queue.is_live
        self._lock = threading.Lock()
        self._seen = _NOT_SEEN  # term and watermark to which _end belongs
        self._end = 0
        self._newest = (0, self._none)  # number of a unit, and units from there that `visible` has just found
        self._head = (0, self._none)  # the newest file's first units, while `visible` searches its end; else none
        self._last_start = -1  # physical offset of the record of unit _end - 1
        self._log_min = -1  # log minimum to which _first belongs
        self._first = 0

    @property
    def units_a_file(self) -> int:
        """Number of units per file; 0 without files."""
        return self._files.known.file_size // self.unit_size

    def file_starts(self) -> list[int]:
        """Return the numbers of the first units of the files."""
        return [start // self.unit_size for start in self._files.known.starts]

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, number: int, count: int) -> UnitArray:
        """Return units [number, number + count), across files; fewer at the end. Does not validate them."""
        pieces: list[bytes] = []
        at, left = number * self.unit_size, count * self.unit_size
        while left > 0:
            piece = self._files.read(at, left)
            if not piece:
                break
            pieces.append(piece)
            at += len(piece)
            left -= len(piece)
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return np.frombuffer(data, self._unit, count=len(data) // self.unit_size)

    def range(self, number: int, count: int) -> FileRange | None:
        """Return the place of units [number, number + count); None if they are in several files, or do not exist."""
        return self._files.range(number * self.unit_size, count * self.unit_size)

    def read_visible(self, number: int, count: int) -> UnitArray:
        """Return like `read`: without a read if the last call of `visible` has found these units."""
        units = part_of(self._newest, number, count)
        if units is None and (head := found_in_look(self)) is not None:
            units = part_of(head, number, count)
        return self.read(number, count) if units is None else units

    def _read_near(self, number: int, count: int) -> UnitArray:
        """Return like `read`: without a read if `visible` has read these units for its search."""
        units = part_of(self._head, number, count)
        return self.read(number, count) if units is None else units

    def unit(self, number: int) -> np.void:
        """Return one existing unit. Raises UnitsGoneError if it no longer exists."""
        units = self.read(number, 1)
        if not len(units):
            raise self._gone(number)
        unit: np.void = units[0]
        return unit

    def _gone(self, number: int) -> UnitsGoneError:
        """Return the error for a missing unit, and make the next call of `visible` search the files again.

        A deleted topic's files are removed while the watermark, for which the bounds are cached, stays the same.
        """
        self.forget()
        return UnitsGoneError(f"the file of queue unit {number} was deleted", unit=number)

    def next_there(self, number: int) -> int:
        """Return the first unit at or after *number* that is in a file, after a gap in the run of files.

        Raises UnitsGoneError if the files begin after *number* or end before it.
        """
        self._files.refresh()
        starts = self.file_starts()
        holding = [start for start in starts if start + self.units_a_file > number]
        if not holding or number < starts[0]:
            raise self._gone(number)
        return max(number, holding[0])

    def _next_file(self, number: int) -> int | None:
        """Return the first unit of the next file after unit *number*; None after the last file."""
        return next((start for start in self.file_starts() if start > number), None)

    def is_live(self, units: UnitArray) -> NDArray[np.bool_]:
        """Return which units point at a record."""
        return self._is_live(units)

    def close_deleted(self) -> None:
        """Close deleted files like FileRun."""
        self._files.close_deleted()

    def forget(self) -> None:
        """Make the next call of `visible` search the files again, even for the same watermark."""
        self._seen = _NOT_SEEN
        self._newest = (0, self._none)
        look_again()

    # -- bounds ---------------------------------------------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """True if the visible end was found before; then only new units are read to find it again."""
        return self._end > 0

    def has_seen(self, watermark: Watermark) -> bool:
        """Return True if the last call of `visible` was for this watermark, and nothing is known to have changed."""
        return self._seen == (watermark.term, watermark.physical_offset)

    def visible(self, watermark: Watermark, *, log_min: int) -> VisibleUnits:
        """Return the units of records in the log below *watermark*.

        Cheap if neither the log's minimum nor the watermark moved.
        """
        seen = (watermark.term, watermark.physical_offset)
        acquire(self._lock)
        try:
            if seen != self._seen or log_min != self._log_min:
                starts = self._files.listing().starts
                before, self._seen = self._seen, _NOT_SEEN  # until the end: if a read raises, all is searched again
                had_live_units = self._first < self._end and seen[0] == before[0]
                self._move_end(watermark, before, starts)
                if log_min != self._log_min or not had_live_units:
                    low = starts[0] // self.unit_size if starts else 0
                    self._first = self.first_at_or_above(log_min, low, self._end)
                    self._log_min = log_min
                self._seen = seen
            return VisibleUnits(min(self._first, self._end), self._end)
        finally:
            self._head = 0, self._none
            self._lock.release()

    def _move_end(self, watermark: Watermark, before: _TermAndEnd, starts: tuple[int, ...]) -> None:
        """Find the end at *watermark*. before: term and watermark to which the known end belongs."""
        limit = watermark.physical_offset
        is_new = watermark.term != before[0] or limit < before[1] or not starts
        is_outside = bool(starts) and self._end < starts[0] // self.unit_size  # files that begin later
        is_other = is_new or is_outside  # a new term, or other files than before
        if not is_other:
            last_start, behind = self._around(self._end)
            is_other = last_start != self._last_start
        if is_other:
            self._read_head(starts)
            self._end = self._find_end(limit, starts)
            last_start, behind = self._around(self._end)
        begin = self._end
        self._end, self._last_start = self._grow(begin, behind, last_start, limit) if starts else (0, -1)
        if self._is_stale is not None:
            self._end = self._without_stale(self._end)
            self._last_start = self._start_of(self._end - 1)
        self._newest = begin, behind[: max(0, self._end - begin)].copy()  # the rest may be much larger
        first, head = self._head
        if first < self._end:
            note_found(self, (first, head[: self._end - first]))

    def _read_head(self, starts: tuple[int, ...]) -> None:
        """Keep the newest file's head for this search."""
        first = starts[-1] // self.unit_size if starts else 0
        self._head = first, self.read(first, self._head_units)

    @property
    def _head_units(self) -> int:
        return min(_HEAD_BYTES // self.unit_size, self.units_a_file)

    def look(self) -> None:
        """Notice the first file of a queue that had none."""
        self._files.listing()

    def last_solid(self) -> tuple[int, UnitArray] | None:
        """Return the last unit that points at a record, visible or not, with its number; None if there is none."""
        starts = self._files.listing().starts
        end = self._without_stale(self._find_end(_NO_LIMIT, starts))
        unit = self.read(end - 1, 1) if end > 0 else self._none
        return (end - 1, unit) if len(unit) and self.is_live(unit)[0] else None

    def end_below(self, physical_offset: int) -> int:
        """Return the number after the last unit whose record ends at or below *physical_offset*."""
        return self._find_end(physical_offset, self._files.listing().starts)

    def _without_stale(self, end: int) -> int:
        """Step back over units whose records are not, or no longer, in the log."""
        while self._is_stale is not None and end > 0:
            unit = self.read(end - 1, 1)
            if not len(unit) or (self.is_live(unit)[0] and not self._is_stale(end - 1, unit)):
                break
            end -= 1
        return end

    def _is_visible(self, units: UnitArray, limit: int) -> NDArray[np.bool_]:
        ends = units["physical_offset"] + units["message_size"].astype(np.int64)
        visible: NDArray[np.bool_] = self._is_live(units) & (ends <= limit)
        return visible

    def _find_end(self, limit: int, starts: tuple[int, ...]) -> int:
        """Return the number after the last visible unit.

        Newest file first; a file's head is read at once, then the rest is bisected.
        """
        for start in reversed(starts):
            first = start // self.unit_size
            low, high = first + self._head_units, first + self.units_a_file
            end, is_over = self._end_in(first, low, limit)
            if not is_over:
                while high - low > _PROBED:
                    middle = first + nearer_half(low - first, high - first)
                    number, unit = self.at_or_after(middle, high)
                    if unit is not None and self._is_visible(unit, limit)[0]:
                        low = end = number + 1
                    else:
                        high = middle
                end = max(end, self._end_in(low, high, limit)[0])
            if end > first:
                return end
        return starts[0] // self.unit_size if starts else 0

    def _end_in(self, low: int, high: int, limit: int) -> tuple[int, bool]:
        """Return the number after the last visible unit of [low, high), or 0, and whether an invisible unit follows.

        Pre-blank units count as neither.
        """
        units = self._read_near(low, high - low)
        if not len(units):
            return 0, high > low
        end, stopped = find_end(units, limit=limit)
        return low + end if end else 0, stopped < high - low

    def at_or_after(self, number: int, end: int) -> tuple[int, UnitArray | None]:
        """Return the first existing unit at or after *number* that is not pre-blank, with its number.

        The unit is None if there is none below *end*.
        """
        count = 1
        while number < end:
            units = self._read_near(number, min(count, end - number))
            if not len(units):
                behind = self._next_file(number)
                if behind is None:
                    return number, None
                number = behind
                continue
            if units["message_size"][0] != consume_queue.PRE_BLANK_SIZE:
                return number, units[:1]
            solid = np.flatnonzero(units["message_size"] != consume_queue.PRE_BLANK_SIZE)
            if len(solid):
                at = int(solid[0])
                return number + at, units[at : at + 1]
            number += len(units)
            count = min(2 * count * _FIRST_LOOK, _MOST_UNITS)
        return number, None

    def _start_of(self, number: int) -> int:
        """Return the physical offset of a unit's record; -1 if there is no unit."""
        if number < 0:
            return -1
        unit = self.read(number, 1)
        return int(unit["physical_offset"][0]) if len(unit) else -1

    def _around(self, end: int) -> tuple[int, UnitArray]:
        """Read once: return the physical offset of the record of unit end - 1, -1 if none, and the units after it."""
        units = self._read_near(end - 1, 1 + _FIRST_LOOK) if end > 0 else self._none
        if not len(units):  # *end* is the first unit, or the first one not expired
            return -1, self._read_near(end, _FIRST_LOOK)
        return int(units["physical_offset"][0]), units[1:]

    def _grow(self, end: int, units: UnitArray, least: int, limit: int) -> tuple[int, int]:
        """Advance a known *end* over units that became visible; return it and the physical offset of its last record.

        units  the first units after *end*
        least  physical offset of the record before *end*: offsets ascend
        """
        count, at = _FIRST_LOOK, end
        while len(units):
            visible = visible_run(units, least=least, limit=limit)
            least = visible.least
            if visible.end:
                end = at + visible.end
            if visible.stopped < len(units):
                behind = self._first_after_damage(at + visible.stopped, units[visible.stopped :], least, limit)
                if behind is None:
                    break
                at, units = behind, self.read(behind, count)
                continue
            at += len(units)
            count = min(2 * count, _MOST_UNITS)
            units = self.read(at, count)
        return end, least

    def _first_after_damage(self, number: int, units: UnitArray, least: int, limit: int) -> int | None:
        """Return the number of the first valid unit among *units*, which begin at *number* with an invalid one.

        None if no valid unit follows: the queue ends here.
        """
        if self._is_true is None or _is_zero(units) or self.is_live(units[:1])[0]:
            return None
        follows = self._is_visible(units, limit) & (units["physical_offset"] > least)
        at = int(follows.argmax())
        return number + at if follows[at] and self._is_true(number + at, units[at : at + 1]) else None

    def first_at_or_above(self, physical_offset: int, low: int, high: int) -> int:
        """Return the first unit in [low, high) whose record starts at or above *physical_offset*; *high* if none.

        Bisects all files (docs/format.md §4, §5), because visible units ascend.
        """
        end = high
        middle = low  # it is usually the first one
        probed = (-1, -1)
        while low < high:
            number, unit = self.at_or_after(middle, end)
            probed = middle, number
            if unit is None or unit["physical_offset"][0] >= physical_offset:
                high = middle
            else:
                low = number + 1
            middle = (low + high) // 2
        number = probed[1] if probed[0] == low else self.at_or_after(low, end)[0]
        return min(number, end)


def _is_zero(units: UnitArray) -> bool:
    data = units.tobytes()
    return data == bytes(len(data))


def part_of(window: tuple[int, UnitArray], number: int, count: int) -> UnitArray | None:
    """Return units [number, number + count) of *window*, (number of its first unit, units); None if it lacks some."""
    first, units = window
    at = number - first
    return units[at : at + count] if at >= 0 and at + count <= len(units) else None
