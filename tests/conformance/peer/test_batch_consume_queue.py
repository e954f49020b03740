"""RocketMQ's queue/BatchConsumeQueueTest: files of 20 units. Unit i: a record at i of 1024 bytes, tag code 111."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidemark.format.dispatch_request import DISPATCH_REQUEST
from tidemark.index.build import BatchConsumeQueueBuilder
from tidemark.index.expire import expire_queue
from tidemark.index.truncate import truncate_queue
from tidemark.read.file_run import FileRun
from tidemark.read.lookup.offset_by_time import TimeAnswer, offset_by_time, offset_by_time_as_broker
from tidemark.read.pull import refuse
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.watermark import Watermark
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance

FILE_SIZE, RECORD_SIZE, TAG_CODE, BATCH = 20 * 46, 1024, 111, 10
# Every offset takes half a minute; a step that shares no divisor with the batch size covers every position in a batch.
STEPS = pytest.mark.parametrize("step", [37, pytest.param(1, marks=pytest.mark.exhaustive)])


class BatchQueue:
    """A queue of *count* units, built from dispatched records, and a reader of it."""

    def __init__(self, folder: Path, count: int, *, first_base: int) -> None:
        self.files = MappedFileQueue(folder, FILE_SIZE, DiskStorage())
        self._end = count + RECORD_SIZE
        numbers = np.arange(count)
        requests = np.zeros(count, DISPATCH_REQUEST)
        requests["physical_offset"], requests["message_size"] = numbers, RECORD_SIZE
        requests["tags_code"], requests["store_timestamp"] = TAG_CODE, 10 * numbers
        requests["base_offset"], requests["batch_size"] = first_base + BATCH * numbers, BATCH
        assert BatchConsumeQueueBuilder(self.files, mark=0).build(requests) == []
        for start in self.files.starts:
            self.files.flush(start)
        self.open()

    def open(self, *, log_min: int = 0) -> None:
        """Read the files as a new reader does."""
        self.reader = QueueReader(self.files.folder, topic="b", queue_id=0, batch=True)
        self.bounds: QueueBounds = self.reader.bounds(Watermark(0, self._end, 0, self._end), log_min=log_min)

    def iterate_from(self, offset: int) -> Any:
        """Return the unit at which iteration from a queue offset begins; None if there is none."""
        if refuse(self.bounds, offset) is not None:
            return None
        return self.reader.run.read(self.reader.locate(offset, self.bounds.units), 1)[0]

    def offset_by_time(self, time_ms: int) -> int:
        """Return RocketMQ's answer, lower boundary."""
        return offset_by_time_as_broker(self.reader, FileRun(self.files.folder / "none"), self.bounds, time_ms)

    @property
    def min_max(self) -> tuple[int, int]:
        return self.bounds.min_offset, self.bounds.max_offset


@pytest.fixture(scope="module")
def from_1000(tmp_path_factory: pytest.TempPathFactory) -> BatchQueue:
    """Return 10,000 units, the first base 1000."""
    return BatchQueue(tmp_path_factory.mktemp("queue"), 10_000, first_base=1000)


@pytest.fixture(scope="module")
def from_1(tmp_path_factory: pytest.TempPathFactory) -> BatchQueue:
    """Return 20,000 units, the first base 1."""
    return BatchQueue(tmp_path_factory.mktemp("queue"), 20_000, first_base=1)


def test_bcq1_ten_thousand_units_fill_500_files(from_1000: BatchQueue) -> None:
    """Bounds follow from the first unit's base and the last one's end."""
    assert len(from_1000.files.starts) == 500
    assert from_1000.min_max == (1000, 101_000)


def test_bcq2_first_and_last_unit_have_base_and_size(from_1000: BatchQueue) -> None:
    """Base and number of messages are compared."""
    first, end = from_1000.bounds.units
    units = [from_1000.reader.run.read(number, 1)[0] for number in (first, end - 1)]
    assert [(unit["base_offset"], unit["batch_size"]) for unit in units] == [(1000, 10), (100_990, 10)]


@STEPS
def test_bcq3_every_offset_finds_the_unit_that_holds_it(from_1000: BatchQueue, step: int) -> None:
    """Offsets below the first base and from the maximum on find nothing."""
    for outside in (0, 999, 101_000, 101_001):
        assert from_1000.iterate_from(outside) is None
    for offset in [*range(1000, 101_000, step), 100_999]:
        unit = from_1000.iterate_from(offset)
        assert (unit["base_offset"], unit["batch_size"]) == (offset // 10 * 10, 10)
        assert (unit["physical_offset"], unit["message_size"]) == ((offset - 1000) // 10, 1024)
        assert unit["tags_code"] == 111


def test_bcq4_bounds_are_computed_from_the_files(from_1: BatchQueue) -> None:
    """A new reader computes the same."""
    assert len(from_1.files.starts) == 1000
    assert from_1.min_max == (1, 200_001)
    from_1.open()
    assert from_1.min_max == (1, 200_001)


@STEPS
def test_bcq5_every_offset_is_found_in_its_unit(from_1: BatchQueue, step: int) -> None:
    """0 and 200001 are outside, every other offset has its unit."""
    assert from_1.iterate_from(0) is None
    assert from_1.iterate_from(200_001) is None
    for offset in [*range(1, 200_001, step), 200_000]:
        assert from_1.iterate_from(offset)["base_offset"] == (offset - 1) // 10 * 10 + 1
    unit = from_1.iterate_from(501)
    assert (unit["base_offset"], unit["batch_size"]) == (501, 10)


@STEPS
def test_bcq6_a_time_gives_the_first_batch_at_or_after_it(from_1: BatchQueue, step: int) -> None:
    """The first batch at or after a time; after the last one RocketMQ returns its base, Tidemark's rules the end."""
    assert [from_1.offset_by_time(time_ms) for time_ms in (-100, 0, 1)] == [1, 1, 11]
    for number in range(0, 20_000, step):
        assert from_1.offset_by_time(10 * number) == 10 * number + 1
    now = time.time_ns() // 1_000_000
    assert from_1.offset_by_time(now) == 199_991
    log = FileRun(from_1.files.folder / "none")
    assert offset_by_time(from_1.reader, log, from_1.bounds, now) == TimeAnswer(200_001, None)


def test_bcq7_a_reopened_queue_is_the_same(tmp_path: Path) -> None:
    """It is synced, and opened again from the files."""
    queue = BatchQueue(tmp_path / "q", 100, first_base=1)
    queue.files.close()
    queue.open()
    assert len(list((tmp_path / "q").iterdir())) == 5
    assert queue.min_max == (1, 1001)
    for offset in range(1, 1001):
        assert queue.iterate_from(offset)["base_offset"] == (offset - 1) // 10 * 10 + 1


def test_bcq8_no_unit_is_found_after_a_truncation(tmp_path: Path) -> None:
    """There are 20,000 units, cut at a seeded position."""
    queue = BatchQueue(tmp_path / "q", 20_000, first_base=1)
    cut = random.Random(8).randrange(1, 20_000)
    assert truncate_queue(queue.files, cut, batch=True) == 20_000 - cut
    queue.open()
    for number in [*range(0, 20_000, 53), cut - 1, cut]:
        unit = queue.iterate_from(10 * number + 1)
        assert (unit is None) == (number >= cut)
        assert unit is None or unit["physical_offset"] == number


def test_bcq9_truncation_and_expiry_delete_whole_files(tmp_path: Path) -> None:
    """A cut at 80 of 100 leaves four files.

    When records below 30 are gone, the first file is deleted, and the minimum is in the next.
    """
    queue = BatchQueue(tmp_path / "q", 100, first_base=1)
    truncate_queue(queue.files, 80, batch=True)
    queue.open()
    assert (len(queue.files.starts), queue.min_max) == (4, (1, 801))
    assert expire_queue(queue.files, 30, batch=True) == [0]
    queue.open(log_min=30)
    assert (len(queue.files.starts), queue.min_max) == (3, (301, 801))
