"""Decisions of a reader about many units and records at once, by compiled loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.kernels import reading as kernel

IntArray = NDArray[np.int64]


class VisibleRun(NamedTuple):
    """Visible part of a sequence of units.

    end      number after the last visible unit; 0 if none
    least    physical offset of its record; of the record before the units if none is visible
    stopped  number of the first invisible unit; the number of units if all are visible
    """

    end: int
    least: int
    stopped: int


def visible_run(units: NDArray[np.void], *, least: int, limit: int) -> VisibleRun:
    """Find the units, of either kind of queue, whose records ascend from *least* and end at or below *limit*.

    least, limit  physical offsets; *least*: of the record before the units. Pre-blank units are skipped
    """
    return VisibleRun(*kernel.count_visible(np.frombuffer(units, np.uint8), units.dtype.itemsize, least, limit, True))


def find_end(units: NDArray[np.void], *, limit: int) -> tuple[int, int]:
    """Return the number after the last unit before the first invisible one, and the number of that one.

    Visible are units of records that end at or below *limit*, in any order. Pre-blank units are skipped; the first
    number is 0 if all are.
    """
    end, _, stopped = kernel.count_visible(np.frombuffer(units, np.uint8), units.dtype.itemsize, -1, limit, False)
    return end, stopped


class ReadLimits(NamedTuple):
    """Remaining limits of a read.

    messages, size  number of messages, and bytes of records
    is_first        nothing was read yet, so one record is accepted regardless of its size
    is_whole        never split a record's messages
    counts          False: do not count messages, because only some of a record's messages will be returned
    """

    messages: int
    size: int
    is_first: bool
    is_whole: bool
    counts: bool


class ReadChoice(NamedTuple):
    """Units to read. numbers: their numbers, None if there are none; examined: number of units examined.

    size, messages  bytes of their records, and number of messages to return
    is_full         True if a limit was reached
    """

    numbers: IntArray | slice | None
    examined: int
    size: int
    messages: int
    is_full: bool


def choose(sizes: IntArray, wanted: IntArray, is_candidate: NDArray[np.bool_], limits: ReadLimits) -> ReadChoice:
    """Choose as many candidates as *limits* allow. sizes, wanted: record bytes and messages to return, per unit."""
    kept = np.empty(len(sizes), np.int64)
    count, examined, size, messages, is_full = kernel.choose(sizes, wanted, is_candidate, *limits, kept)
    numbers = None if not count else slice(count) if count == examined else kept[:count]
    return ReadChoice(numbers, examined, size, messages, bool(is_full))


class ChosenUnits(NamedTuple):
    """Units of a simple queue to read. size: bytes of their records; examined, is_full: as in ReadChoice."""

    numbers: IntArray
    physical_offsets: IntArray
    sizes: IntArray
    examined: int
    size: int
    is_full: bool


def choose_units(
    units: NDArray[np.void], number: int, *, most_messages: int, most_bytes: int, is_first: bool
) -> ChosenUnits:
    """Choose as many *units* of a simple queue, from unit *number* on, as the limits allow; pre-blank ones are skipped.

    is_first: nothing was read yet, so one record is accepted regardless of its size
    """
    columns = np.empty((3, len(units)), np.int64)
    numbers, offsets, sizes = columns
    count, examined, size, is_full = kernel.choose_units(
        np.frombuffer(units, np.uint8),
        units.dtype.itemsize,
        number,
        most_messages,
        most_bytes,
        is_first,
        numbers,
        offsets,
        sizes,
    )
    return ChosenUnits(numbers[:count], offsets[:count], sizes[:count], examined, size, bool(is_full))


class ReadRun(NamedTuple):
    """Records to read together: their numbers start ≤ n < stop.

    physical_offset, span  where to read in the log, and how many bytes, gaps included
    place, size            where the records are when all are stored consecutively, and their bytes
    """

    start: int
    stop: int
    physical_offset: int
    span: int
    place: int
    size: int

    @property
    def records(self) -> slice:
        return slice(self.start, self.stop)


class ReadPlan(NamedTuple):
    """Plan of reads. places: start of each record when they are stored consecutively; size: total bytes."""

    places: IntArray
    runs: list[ReadRun]
    size: int


def plan_reads(
    physical_offsets: IntArray, sizes: IntArray, *, file_size: int, gap: int, most_together: int
) -> ReadPlan | None:
    """Plan reads of records that are close to each other in one file; None if a record cannot be in any file.

    file_size      0 if unknown
    gap            read over gaps of at most this many bytes
    most_together  most bytes of a read with gaps; a read without gaps is not limited
    """
    places, runs = np.empty(len(sizes), np.int64), np.empty((len(sizes), len(ReadRun._fields)), np.int64)
    count, size = kernel.plan_reads(physical_offsets, sizes, file_size, gap, most_together, places, runs)
    if count < 0:
        return None
    return ReadPlan(places, list(map(ReadRun._make, runs[:count].tolist())), int(size))
