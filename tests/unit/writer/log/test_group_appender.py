"""Groups of batches and tasks over a real tail of the log."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from services.writer.log.append_counts import AppendCounts
from services.writer.log.group_appender import GroupAppender
from tests.unit.writer.batches import batch_of
from tests.unit.writer.log.log_tails import Tail
from tidemark.errors import DiskFullError, FlushFailedError, NextOffsetMismatchError, RequestConflictError


def appender_of(tail: Tail, dead_end: Callable[[str], int] = lambda _: 0) -> GroupAppender:
    return GroupAppender(tail.log, tail.tail, tail.window, AppendCounts(100), dead_end)


@pytest.fixture
def appender(tail: Tail) -> GroupAppender:
    return appender_of(tail)


def test_group_is_written_when_append_returns(tail: Tail, appender: GroupAppender) -> None:
    batches = [batch_of(b"a"), batch_of(b"b", b"c")]
    written = appender.append(batches)
    assert tail.queue_offsets() == [0, 1, 2]
    assert (written.batches, written.appends, written.files) == (batches, 2, [0])
    assert written.end == appender.written_offset == tail.tail.position
    assert all(batch.written_ns > 0 for batch in batches)


def test_task_runs_after_the_batches_before_it_are_written(tail: Tail, appender: GroupAppender) -> None:
    seen: list[list[int]] = []
    appender.append([batch_of(b"a"), lambda: seen.append(tail.queue_offsets()), batch_of(b"b")])
    assert seen == [[0]]
    assert tail.queue_offsets() == [0, 1]


def test_refused_batch_gets_its_error_and_the_others_are_stored(tail: Tail, appender: GroupAppender) -> None:
    refused = batch_of(b"b", expected_next_offset=7)
    written = appender.append([batch_of(b"a"), refused, batch_of(b"c")])
    assert isinstance(refused.error, NextOffsetMismatchError)
    assert refused.appended is None and refused.written_ns == 0
    assert written.appends == 3
    assert tail.queue_offsets() == [0, 1]


def test_repeat_in_the_same_group_is_answered_with_the_original(tail: Tail, appender: GroupAppender) -> None:
    original, repeat = batch_of(b"a", key="k"), batch_of(b"a", key="k")
    appender.append([original, repeat])
    assert original.appended is not None and repeat.appended is not None
    assert repeat.appended.duplicate and not original.appended.duplicate
    assert repeat.appended.physical_offset == original.appended.physical_offset
    assert tail.queue_offsets() == [0]


def test_key_with_other_content_is_refused(tail: Tail, appender: GroupAppender) -> None:
    other = batch_of(b"b", key="k")
    appender.append([batch_of(b"a", key="k"), other])
    assert isinstance(other.error, RequestConflictError)
    assert tail.queue_offsets() == [0]


def test_original_from_before_the_deletion_of_its_topic_does_not_count(tail: Tail) -> None:
    ends = {"orders": 0}
    appender = appender_of(tail, ends.__getitem__)
    ends["orders"] = appender.append([batch_of(b"a", key="k")]).end
    again = batch_of(b"a", key="k")
    appender.append([again])
    assert again.appended is not None and not again.appended.duplicate
    assert tail.queue_offsets() == [0, 1]


def test_full_disk_refuses_the_group_and_the_next_one_is_stored(tail: Tail, appender: GroupAppender) -> None:
    tail.disk.refuses_data = True
    batch = batch_of(b"a")
    written = appender.append([batch])
    assert isinstance(batch.error, DiskFullError)
    assert (written.end, appender.written_offset) == (0, 0)
    tail.disk.refuses_data = False
    appender.append([batch_of(b"b")])
    assert tail.queue_offsets() == [0]


def test_write_that_cannot_be_undone_stops_the_log(tail: Tail, appender: GroupAppender) -> None:
    tail.disk.refuses_data = tail.disk.refuses_zeros = True
    with pytest.raises(FlushFailedError):
        appender.append([batch_of(b"a")])
