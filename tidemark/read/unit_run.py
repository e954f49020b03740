"""The units of one queue by number, and which of them may be seen: from the log's minimum up to the watermark.

Unit n lies at byte n · unit size of the queue's files. Units ascend by physical offset; pre-blank units, which fill a
queue's head and its holes, are stepped over. Behind the visible end anything may lie: zero bytes, units that are not
published yet, and in an attached store units of records that were cut off the log's end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import OffsetTooSmallError
from tidemark.format import batch_consume_queue, consume_queue
from tidemark.format.reading import visible_run
from tidemark.read.cached import held
from tidemark.read.file_run import FileRun
from tidemark.read.watermark import Watermark
from tidemark.store.halving import nearer_half

_FIRST_LOOK = 128  # units read at once to see how far a queue has grown; doubles while all of them are visible
_MOST_UNITS = 65_536
_HEAD = 128  # units of a file that are looked at together to find where they end: short queues end there

_NO_LIMIT = (1 << 63) - 1

UnitArray = NDArray[np.void]
IsStale = Callable[[int, UnitArray], bool]  # (number, unit): whether its record is in the log, but not there
IsTrue = Callable[[int, UnitArray], bool]  # (number, unit): whether it points at its own record


class UnitsGoneError(OffsetTooSmallError):
    """Units within the bounds that the caller looked up have expired meanwhile: look again, and there are others."""


class VisibleUnits(NamedTuple):
    """Numbers of a queue's units that may be read: first ≤ n < end."""

    first: int
    end: int


class UnitRun:
    """Units of one queue's files. Safe for several threads.

    is_stale  asked about the last visible unit, for files of others: they leave units behind the end as they were
    is_true   asked about a unit behind a damaged one: the queue ends before damage only if nothing true follows
    """

    def __init__(
        self, folder: Path, *, batch: bool, is_stale: IsStale | None = None, is_true: IsTrue | None = None
    ) -> None:
        self._is_stale = is_stale
        self._is_true = is_true
        self._files = FileRun(folder)
        self._unit = batch_consume_queue.UNIT if batch else consume_queue.UNIT
        self._is_live = batch_consume_queue.is_live if batch else consume_queue.is_live
        self._lock = threading.Lock()
        self._seen: tuple[int, int] = (-1, -1)  # term and watermark for which _end holds
        self._end = 0
        self._last_start = -1  # where the record of unit _end - 1 starts
        self._log_min = -1  # for which _first holds
        self._first = 0

    @property
    def unit_size(self) -> int:
        """Bytes of a unit."""
        return self._unit.itemsize

    @property
    def units_a_file(self) -> int:
        """Units in one file; 0 while there is none."""
        return self._files.known.file_size // self.unit_size

    def file_starts(self) -> list[int]:
        """Numbers of the units with which the files begin."""
        return [start // self.unit_size for start in self._files.known.starts]

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, number: int, count: int) -> UnitArray:
        """Units [number, number + count), over the edges of files; fewer where files end. Decides nothing."""
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

    def unit(self, number: int) -> np.void:
        """One unit that is known to be there; UnitsGoneError when it has gone."""
        units = self.read(number, 1)
        if not len(units):
            raise self._gone(number)
        unit: np.void = units[0]
        return unit

    def _gone(self, number: int) -> UnitsGoneError:
        """Return the error for a missing unit; the next look at the bounds searches the files anew.

        A deleted topic's files are removed while the watermark, for which the bounds are cached, stays where it is.
        """
        self.forget()
        return UnitsGoneError("the queue's file was deleted", unit=number)

    def next_there(self, number: int) -> int:
        """The first unit at or after *number* that lies in a file: behind a gap in the row of files.

        raises UnitsGoneError when the files begin behind *number*, or end before it
        """
        self._files.refresh()
        starts = self.file_starts()
        holding = [start for start in starts if start + self.units_a_file > number]
        if not holding or number < starts[0]:
            raise self._gone(number)
        return max(number, holding[0])

    def _next_file(self, number: int) -> int | None:
        """Where the first file begins that begins behind unit *number*; None behind the last one."""
        return next((start for start in self.file_starts() if start > number), None)

    def is_live(self, units: UnitArray) -> NDArray[np.bool_]:
        """Which units point at a record."""
        return self._is_live(units)

    def let_go_of_deleted(self) -> None:
        """As FileRun's."""
        self._files.let_go_of_deleted()

    def forget(self) -> None:
        """Search the files anew at the next look at the bounds, even for the same watermark."""
        self._seen = (-1, -1)

    # -- bounds ---------------------------------------------------------------------------------------------------

    @property
    def is_known(self) -> bool:
        """Whether its visible end was found before: then finding it again reads only what has come since."""
        return self._end > 0

    def visible(self, watermark: Watermark, *, log_min: int) -> VisibleUnits:
        """The units of records that are in the log and below *watermark*. Cheap while neither has moved."""
        seen = (watermark.term, watermark.physical_offset)
        with held(self._lock):
            if seen != self._seen or log_min != self._log_min:
                starts = self._files.listing().starts
                had_live_units = self._first < self._end and seen[0] == self._seen[0]
                self._move_end(watermark, seen, starts)
                if log_min != self._log_min or not had_live_units:
                    low = starts[0] // self.unit_size if starts else 0
                    self._first = self.first_at_or_above(log_min, low, self._end)
                    self._log_min = log_min
            return VisibleUnits(min(self._first, self._end), self._end)

    def _move_end(self, watermark: Watermark, seen: tuple[int, int], starts: tuple[int, ...]) -> None:
        limit = watermark.physical_offset
        is_new = seen[0] != self._seen[0] or seen[1] < self._seen[1] or not starts
        is_outside = bool(starts) and self._end < starts[0] // self.unit_size  # files that begin later
        last_start, behind = self._around(self._end)
        if is_new or is_outside or last_start != self._last_start:  # a new term, or other files than before
            self._end = self._find_end(limit, starts)
            last_start, behind = self._around(self._end)
        self._end, self._last_start = self._grow(self._end, behind, last_start, limit) if starts else (0, -1)
        if self._is_stale is not None:
            self._end = self._without_stale(self._end)
            self._last_start = self._start_of(self._end - 1)
        self._seen = seen

    def look(self) -> None:
        """Notice the first file of a queue that had none."""
        self._files.listing()

    def last_solid(self) -> tuple[int, UnitArray] | None:
        """The last unit that points at a record, and its number, however far the log is visible; None without one."""
        starts = self._files.listing().starts
        end = self._without_stale(self._find_end(_NO_LIMIT, starts))
        unit = self.read(end - 1, 1) if end > 0 else self.read(0, 0)
        return (end - 1, unit) if len(unit) and self.is_live(unit)[0] else None

    def end_below(self, physical_offset: int) -> int:
        """Number behind the last unit whose record ends at or below *physical_offset*."""
        return self._find_end(physical_offset, self._files.listing().starts)

    def _without_stale(self, end: int) -> int:
        """Step back over units whose records are not in the log (any more)."""
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
        """Behind the last visible unit: newest file first. A file's head at once, the rest by halving."""
        for start in reversed(starts):
            first = start // self.unit_size
            low, high = min(first + _HEAD, first + self.units_a_file), first + self.units_a_file
            end, is_over = self._end_in(first, low, limit)
            if not is_over:
                while high - low > _HEAD:
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
        """Behind the last visible unit of [low, high), 0 without one; whether something stands there that is not.

        Pre-blank units are neither.
        """
        units = self.read(low, high - low)
        blank = units["message_size"] == consume_queue.PRE_BLANK_SIZE
        wrong = np.flatnonzero(~(blank | self._is_visible(units, limit)))
        stop = int(wrong[0]) if len(wrong) else len(units)
        solid = np.flatnonzero(~blank[:stop])
        return low + int(solid[-1]) + 1 if len(solid) else 0, stop < high - low

    def at_or_after(self, number: int, end: int) -> tuple[int, UnitArray | None]:
        """The first unit at or after *number* that is there and not pre-blank, and its number.

        None when none is below *end*.
        """
        count = 1
        while number < end:
            units = self.read(number, min(count, end - number))
            if not len(units):
                behind = self._next_file(number)
                if behind is None:
                    return number, None
                number = behind
                continue
            solid = np.flatnonzero(units["message_size"] != consume_queue.PRE_BLANK_SIZE)
            if len(solid):
                at = int(solid[0])
                return number + at, units[at : at + 1]
            number += len(units)
            count = min(2 * count * _FIRST_LOOK, _MOST_UNITS)
        return number, None

    def _start_of(self, number: int) -> int:
        """Physical offset of a unit's record; -1 where there is no unit."""
        if number < 0:
            return -1
        unit = self.read(number, 1)
        return int(unit["physical_offset"][0]) if len(unit) else -1

    def _around(self, end: int) -> tuple[int, UnitArray]:
        """By one read: where the record of unit end - 1 starts, -1 without one; and the first units behind it."""
        units = self.read(end - 1, 1 + _FIRST_LOOK) if end > 0 else self.read(0, 0)
        if not len(units):  # the first unit of all, or of those that have not expired
            return -1, self.read(end, _FIRST_LOOK)
        return int(units["physical_offset"][0]), units[1:]

    def _grow(self, end: int, units: UnitArray, least: int, limit: int) -> tuple[int, int]:
        """Walk on from a known *end* over what has become visible since; that end, and the start of its last record.

        units  the first ones behind *end*
        least  start of the record before *end*: starts ascend
        """
        count, at = _FIRST_LOOK, end
        while len(units):
            visible = visible_run(units, least=least, limit=limit)
            least = visible.least
            if visible.end:
                end = at + visible.end
            if visible.stopped < len(units):
                behind = self._behind_damage(at + visible.stopped, units[visible.stopped :], least, limit)
                if behind is None:
                    break
                at, units = behind, self.read(behind, count)
                continue
            at += len(units)
            count = min(2 * count, _MOST_UNITS)
            units = self.read(at, count)
        return end, least

    def _behind_damage(self, number: int, units: UnitArray, least: int, limit: int) -> int | None:
        """Return the number of the first true unit among *units*, which begin at *number* with one that is none.

        None where nothing true follows: the queue ends here.
        """
        if self._is_true is None or self.is_live(units[:1])[0] or not units.view(np.uint8).any():
            return None
        follows = self._is_visible(units, limit) & (units["physical_offset"] > least)
        at = int(follows.argmax())
        return number + at if follows[at] and self._is_true(number + at, units[at : at + 1]) else None

    def first_at_or_above(self, physical_offset: int, low: int, high: int) -> int:
        """Number of the first unit in [low, high) whose record starts at or above *physical_offset*; *high* if none.

        By halving over all files (docs/format.md §4, §5): the units are visible ones, so they ascend.
        """
        end = high
        middle = low  # for the most part it is the first one
        while low < high:
            number, unit = self.at_or_after(middle, end)
            if unit is None or unit["physical_offset"][0] >= physical_offset:
                high = middle
            else:
                low = number + 1
            middle = (low + high) // 2
        number, _ = self.at_or_after(low, end)
        return min(number, end)
