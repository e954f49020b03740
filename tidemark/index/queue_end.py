"""Where a queue's units end: found by halving, because units ascend by physical offset and zero bytes follow them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.store.mapped_file_queue import MappedFileQueue

UnitTest = Callable[[np.void], bool]


def simple_unit_below(physical_end: int) -> UnitTest:
    """Whether a ConsumeQueue unit is there and its record starts below *physical_end*. Pre-blank units count."""

    def below(unit: np.void) -> bool:
        if unit["message_size"] == consume_queue.PRE_BLANK_SIZE:
            return True
        return bool(
            unit["physical_offset"] >= 0 and unit["message_size"] > 0 and unit["physical_offset"] < physical_end
        )

    return below


def batch_unit_below(physical_end: int) -> UnitTest:
    """Whether a BatchConsumeQueue unit is there and its record starts below *physical_end*."""

    def below(unit: np.void) -> bool:
        live = unit["physical_offset"] >= 0 and unit["message_size"] > 0 and unit["base_offset"] >= 0
        return bool(live and unit["batch_size"] > 0 and unit["physical_offset"] < physical_end)

    return below


def find_end(files: MappedFileQueue, unit: np.dtype[np.void], below: UnitTest) -> int:
    """Byte behind the last unit that is *below*; where the first file starts when there is none."""
    size = unit.itemsize
    for start in reversed(files.starts):
        low, high = 0, files.file_size // size
        while low < high:
            middle = (low + high) // 2
            if below(np.frombuffer(files.read(start + middle * size, size), unit)[0]):
                low = middle + 1
            else:
                high = middle
        if low:
            return start + low * size
    return files.min_offset


def find_simple_end(files: MappedFileQueue, physical_end: int) -> int:
    """Byte behind the last ConsumeQueue unit whose record starts below *physical_end*."""
    return find_end(files, consume_queue.UNIT, simple_unit_below(physical_end))


def find_batch_end(files: MappedFileQueue, physical_end: int) -> int:
    """Byte behind the last BatchConsumeQueue unit whose record starts below *physical_end*."""
    return find_end(files, batch_consume_queue.UNIT, batch_unit_below(physical_end))
