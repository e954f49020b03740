from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from services.writer.batch.batch import Batch, QueueKey
from services.writer.batch.record_encoder import Encoder
from services.writer.dedup.recent_batches import RecentBatches, TailKeys
from services.writer.log.batch_journal import BatchJournal
from services.writer.log.disk_guard import DiskGuard
from services.writer.log.log_tail import LogTail
from services.writer.log.page_preallocation import PagePreallocation
from services.writer.log.queue_offsets import QueueOffsets
from services.writer.log.segments import Segments
from tests.builders import STORE_HOST
from tests.unit.writer.batches import batch_of
from tidemark.errors import DiskFullError, FlushFailedError, NextOffsetMismatchError
from tidemark.format.check import Checker
from tidemark.format.dispatch_request import Outcome
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

FILE_SIZE = 1 << 16
ORDERS = QueueKey("orders", 0)


class FailingDisk(DiskStorage):
    """A disk that refuses writes of data, and of zeros, when a test says so."""

    def __init__(self) -> None:
        self.refuses_data = self.refuses_zeros = False

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        is_zeros = not any(data)
        if self.refuses_zeros if is_zeros else self.refuses_data:
            os.pwrite(descriptor, bytes(data)[: len(data) // 2], at)
            raise DiskFullError("the disk is full: the test said so")
        super().pwrite(descriptor, data, at)


class Tail:
    """A `LogTail` over files of *FILE_SIZE* bytes, and its parts."""

    def __init__(self, folder: Path) -> None:
        self.disk = FailingDisk()
        self.log = MappedFileQueue(folder / "commitlog", FILE_SIZE, self.disk)
        self.offsets = QueueOffsets()
        self.window = RecentBatches(100, TailKeys(0))
        journal_disk = DiskStorage()
        self.journal = BatchJournal(folder / "batches", journal_disk, token=bytes(16), start=0)
        self.pages = PagePreallocation(self.log)
        self.tail = LogTail(
            Segments(self.log),
            Encoder(STORE_HOST),
            self.offsets,
            self.window,
            DiskGuard(folder, 0),
            self.journal,
            self.pages,
            position=0,
            store_timestamp=0,
            buffer_size=1 << 14,
        )

    def append(self, *batches: Batch) -> None:
        for batch in batches:
            self.tail.append(batch)
        self.tail.write_out()

    def queue_offsets(self) -> list[int]:
        """Return the queue offsets of all records, by a walk over the files."""
        found: list[int] = []
        for start in self.log.starts:
            stop = min(self.tail.position - start, FILE_SIZE)
            data = np.frombuffer(bytearray(self.log.read(start, stop)), np.uint8)
            checked = Checker().check(data, base_offset=start)
            assert checked.outcome in (Outcome.END, Outcome.BLANK), checked.outcome
            found += [int(offset) for offset in checked.requests["queue_offset"]]
        return found


@pytest.fixture
def tail(tmp_path: Path) -> Iterator[Tail]:
    made = Tail(tmp_path)
    yield made
    made.pages.close()
    made.journal.close()
    made.log.close()


def test_batches_of_one_queue_are_numbered_densely_in_their_order(tail: Tail) -> None:
    tail.append(batch_of(b"a", b"b"), batch_of(b"c"), batch_of(b"other", queue_id=1), batch_of(b"d"))
    assert tail.queue_offsets() == [0, 1, 2, 0, 3]
    assert dict(tail.offsets) == {ORDERS: 4, QueueKey("orders", 1): 1}


def test_a_batch_is_appended_only_after_write_out(tail: Tail) -> None:
    batch = batch_of(b"a")
    tail.tail.append(batch)
    assert tail.log.starts == [0] and not any(tail.log.read(0, FILE_SIZE))
    tail.tail.write_out()
    assert batch.appended is not None
    assert (batch.appended.physical_offset, batch.appended.end_offset) == (0, tail.tail.position)
    assert tail.tail.take_dirty() == [0]
    assert tail.tail.take_dirty() == []


def test_a_batch_that_does_not_fit_rolls_to_the_next_file(tail: Tail) -> None:
    """The old file ends with a blank record, and queue offsets continue."""
    body = b"x" * 10_000
    batches = [batch_of(body) for _ in range(8)]
    tail.append(*batches)
    assert tail.log.starts == [0, FILE_SIZE]
    assert tail.tail.take_roll() == FILE_SIZE
    assert tail.tail.take_roll() is None
    assert tail.queue_offsets() == list(range(8))
    placed = [batch.appended.physical_offset for batch in batches if batch.appended is not None]
    assert placed == sorted(placed) and placed[-1] >= FILE_SIZE


def test_a_batch_larger_than_the_buffer_is_written_alone_and_in_order(tail: Tail) -> None:
    tail.append(batch_of(b"small"), batch_of(b"x" * 20_000), batch_of(b"small"))
    assert tail.queue_offsets() == [0, 1, 2]


def test_a_wrong_expected_offset_is_refused_and_changes_nothing(tail: Tail) -> None:
    tail.append(batch_of(b"a"))
    end = tail.tail.position
    with pytest.raises(NextOffsetMismatchError) as refused:
        tail.tail.append(batch_of(b"b", expected_next_offset=7))
    assert (refused.value.facts["expected"], refused.value.facts["actual"]) == (7, 1)
    tail.append(batch_of(b"c", expected_next_offset=1))
    assert tail.queue_offsets() == [0, 1]
    assert tail.tail.position > end


def test_a_failed_write_is_undone_and_uses_no_queue_offset(tail: Tail) -> None:
    tail.append(batch_of(b"a", key="first"))
    end = tail.tail.position
    tail.disk.refuses_data = True
    failed = [batch_of(b"b", key="second"), batch_of(b"c")]
    tail.append(*failed)
    assert all(batch.appended is None and isinstance(batch.error, DiskFullError) for batch in failed)
    assert tail.tail.position == end
    assert not any(tail.log.read(end, FILE_SIZE - end)), "half of it was written, and is zeros again"
    assert (tail.offsets.next(ORDERS), tail.window.find(failed[0])) == (1, [])
    tail.disk.refuses_data = False
    tail.append(batch_of(b"d"))
    assert tail.queue_offsets() == [0, 1]


def test_a_failed_write_that_cannot_be_undone_ends_the_log(tail: Tail) -> None:
    tail.append(batch_of(b"a"))
    tail.disk.refuses_data = tail.disk.refuses_zeros = True
    tail.tail.append(batch_of(b"b"))
    with pytest.raises(FlushFailedError):
        tail.tail.write_out()


def test_store_timestamps_never_decrease(tail: Tail) -> None:
    """A clock that is set back gives the greatest time so far."""
    future_ms = 4_102_444_800_000
    tail.tail.store_timestamp = future_ms
    batch = batch_of(b"a")
    tail.append(batch)
    assert batch.appended is not None
    assert batch.appended.store_timestamp == future_ms
