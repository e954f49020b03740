from __future__ import annotations

import pytest

from services.writer.batch.batch import QueueKey
from tests.unit.writer.batches import batch_of
from tests.unit.writer.log.log_tails import FILE_SIZE, Tail
from tidemark.errors import DiskFullError, FlushFailedError, NextOffsetMismatchError

ORDERS = QueueKey("orders", 0)


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
