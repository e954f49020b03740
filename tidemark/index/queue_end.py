"""Finds the end of a queue's units by bisection: units ascend by physical offset, and zero bytes follow them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.store.halving import nearer_half
from tidemark.store.mapped_file_queue import MappedFileQueue

UnitTest = Callable[[NDArray[np.void]], NDArray[np.bool_]]
_HEAD = 128  # units of a file that are read first: a short queue ends within them


def simple_units_below(physical_end: int) -> UnitTest:
    """Return a test for ConsumeQueue units that are pre-blank or refer to a record below *physical_end*."""

    def below(units: NDArray[np.void]) -> NDArray[np.bool_]:
        blank = units["message_size"] == consume_queue.PRE_BLANK_SIZE
        right: NDArray[np.bool_] = blank | (consume_queue.is_live(units) & (units["physical_offset"] < physical_end))
        return right

    return below


def batch_units_below(physical_end: int) -> UnitTest:
    """Return a test for BatchConsumeQueue units that refer to a record below *physical_end*."""

    def below(units: NDArray[np.void]) -> NDArray[np.bool_]:
        right: NDArray[np.bool_] = batch_consume_queue.is_live(units) & (units["physical_offset"] < physical_end)
        return right

    return below


def find_end(files: MappedFileQueue, unit: np.dtype[np.void], below: UnitTest) -> int:
    """Return the end of the last unit that passes *below*; if there is none, the start of the first file."""
    size = unit.itemsize

    def right(first: int, count: int) -> NDArray[np.bool_]:
        return below(np.frombuffer(files.read(first, count * size), unit))

    def end_in(start: int, low: int, high: int) -> int:
        found = right(start + low * size, high - low)
        return high if found.all() else low + int(found.argmin())

    for start in reversed(files.starts):
        units = files.file_size // size
        low, high = end_in(start, 0, min(_HEAD, units)), units
        if low == _HEAD:
            while high - low > _HEAD:
                middle = nearer_half(low, high)
                if right(start + middle * size, 1)[0]:
                    low = middle + 1
                else:
                    high = middle
            low = end_in(start, low, high)
        if low:
            return start + low * size
    return files.min_offset


def find_simple_end(files: MappedFileQueue, physical_end: int) -> int:
    """Return the end of the last ConsumeQueue unit whose record starts below *physical_end*."""
    return find_end(files, consume_queue.UNIT, simple_units_below(physical_end))


def find_batch_end(files: MappedFileQueue, physical_end: int) -> int:
    """Return the end of the last BatchConsumeQueue unit whose record starts below *physical_end*."""
    return find_end(files, batch_consume_queue.UNIT, batch_units_below(physical_end))
