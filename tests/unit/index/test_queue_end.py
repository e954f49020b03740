"""Ends of short and long queues whose files hold thousands of units: the search agrees with a look at every unit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tidemark.format import batch_consume_queue, consume_queue
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.read.unit_run import UnitRun
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name

UNITS = 3_000  # of a file
SIZE = 100  # of a record
FILLED = (0, 1, 2, 127, 128, 129, 255, 256, 257, 300, 511, 513, 1_000, 2_047, 2_999, 3_000, 3_001, 3_500, 6_000)
BLANK = 20


def units_of(count: int, *, batch: bool, blank: int = 0) -> NDArray[np.void]:
    units = np.zeros(count, batch_consume_queue.UNIT if batch else consume_queue.UNIT)
    units["physical_offset"] = SIZE * np.arange(count)
    units["message_size"] = SIZE
    if batch:
        units["base_offset"], units["batch_size"] = np.arange(count), 1
    else:
        units["physical_offset"][:blank] = 0
        units["message_size"][:blank] = consume_queue.PRE_BLANK_SIZE
    return units


def write(folder: Path, units: NDArray[np.void]) -> Path:
    """Write files of 3,000 units, zero-filled."""
    folder.mkdir()
    file_size = UNITS * units.itemsize
    data = units.tobytes()
    for start in range(0, max(len(data), 1), file_size):
        piece = data[start : start + file_size]
        (folder / file_name(start)).write_bytes(piece + bytes(file_size - len(piece)))
    return folder


@pytest.mark.parametrize("batch", [False, True])
def test_the_end_of_a_queue_of_any_length_is_found(tmp_path: Path, batch: bool) -> None:
    """The writer and the reader of queues agree."""
    size = (batch_consume_queue if batch else consume_queue).UNIT_SIZE
    find = find_batch_end if batch else find_simple_end
    for filled in FILLED:
        folder = write(tmp_path / str(filled), units_of(filled, batch=batch))
        files, run = MappedFileQueue(folder, UNITS * size), UnitRun(folder, batch=batch)
        for below in sorted({0, 1, filled // 3, filled // 2, filled - 1, filled} & set(range(filled + 1))):
            assert find(files, SIZE * below) == size * below, (filled, below)
            assert run.end_below(SIZE * below) == below, (filled, below)
        files.close()


@pytest.mark.parametrize("filled", [BLANK, BLANK + 1, 150, 1_000, 3_100])
def test_a_reader_does_not_count_a_pre_blank_head(tmp_path: Path, filled: int) -> None:
    """The writer of queues counts pre-blank units; a reader finds no unit if there are only pre-blank ones."""
    folder = write(tmp_path / "queue", units_of(filled, batch=False, blank=BLANK))
    files = MappedFileQueue(folder, UNITS * consume_queue.UNIT_SIZE)
    assert find_simple_end(files, 1 << 62) == consume_queue.UNIT_SIZE * filled
    assert UnitRun(folder, batch=False).end_below(1 << 62) == (filled if filled > BLANK else 0)
    files.close()


def test_a_reader_skips_a_long_pre_blank_head(tmp_path: Path) -> None:
    """The head is longer than the block that is examined together."""
    for blank, filled in ((500, 501), (2_999, 3_000), (3_000, 3_001), (4_000, 4_300), (500, 500)):
        folder = write(tmp_path / f"{blank}-{filled}", units_of(filled, batch=False, blank=blank))
        found = UnitRun(folder, batch=False).end_below(1 << 62)
        assert found == (filled if filled > blank else 0), (blank, filled)


@pytest.mark.parametrize("filled", [100, 5_000])
def test_a_queue_ends_before_a_zeroed_hole(tmp_path: Path, filled: int) -> None:
    """A page in a short queue never reached the disk: the queue ends before it."""
    units = units_of(filled, batch=False)
    units[40:60] = 0
    if filled > UNITS:
        units[UNITS + 40 : UNITS + 60] = 0
    folder = write(tmp_path / "queue", units)
    expected = 40 if filled < UNITS else UNITS + 40
    files = MappedFileQueue(folder, UNITS * consume_queue.UNIT_SIZE)
    assert find_simple_end(files, 1 << 62) == consume_queue.UNIT_SIZE * expected
    assert UnitRun(folder, batch=False).end_below(1 << 62) == expected
    files.close()
