"""Assignment of ranges to tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.fake_log import FakeLog
from tidemark.client.received_message import TopicQueue
from tidemark.errors import UnavailableError
from tidemark.spark.source.ranges import QueueRange
from tidemark.spark.source.source_options import SourceOptions, read_options
from tidemark.spark.source.tasks import Task, in_tasks

LOG = FakeLog({})  # every message has one byte


def tasks(counts: list[int], **options: int) -> list[tuple[int, ...]]:
    """Return the queues of each task, for queues with these numbers of messages."""
    ranges = [QueueRange("orders", queue, 5, 5 + count) for queue, count in enumerate(counts)]
    given = {"path": "/store", "subscribe": "orders"} | {name: str(value) for name, value in options.items()}
    found = in_tasks(ranges, read_options(SourceOptions, given), LOG)
    return [tuple(one.queue_id for one in task.ranges) for task in found]


def test_short_ranges_share_a_task() -> None:
    """Ranges are combined until they have enough; a range that has enough is alone, and an empty one is omitted."""
    assert tasks([30, 60, 0, 100, 9, 1, 200, 50], minOffsetsPerPartition=90) == [(0, 1), (3,), (6,), (4, 5, 7)]


def test_tasks_are_not_shared_with_min_partitions() -> None:
    """This applies with minPartitions, or if one message is enough."""
    assert tasks([3, 4], minPartitions=1) == tasks([3, 4], minOffsetsPerPartition=1) == [(0,), (1,)]
    assert tasks([3, 4]) == [(0, 1)]


def test_a_range_with_key_offsets_counts_only_those() -> None:
    """The distance between them does not matter."""
    far = QueueRange("orders", 0, 0, 1_000_000, places=(3, 900_000))
    assert in_tasks([far, QueueRange("orders", 1, 0, 5)], read_options(SourceOptions, _ANY), LOG) == [
        Task((far, QueueRange("orders", 1, 0, 5)))
    ]


@given(counts=st.lists(st.integers(0, 50)), least=st.integers(1, 60))
def test_each_range_is_in_one_task(counts: list[int], least: int) -> None:
    """Only the last task of short ranges may have less than the minimum."""
    found = tasks(counts, minOffsetsPerPartition=least)
    assert sorted(queue for task in found for queue in task) == [queue for queue, count in enumerate(counts) if count]
    assert sum(sum(counts[queue] for queue in task) < least for task in found) <= 1


def test_a_range_of_many_bytes_has_several_tasks() -> None:
    """The last part may be short, and shares a task; so does a range that is too short to be examined."""
    options = read_options(SourceOptions, _ANY | {"minOffsetsPerPartition": "10", "maxBytesPerPartition": "25"})
    long, short = QueueRange("orders", 0, 5, 62), QueueRange("orders", 1, 0, 9)
    found = in_tasks([long, short], options, LOG)
    assert [[(one.queue_id, one.start, one.end) for one in task.ranges] for task in found] == [
        [(0, 5, 30)],
        [(0, 30, 55)],
        [(0, 55, 62), (1, 0, 9)],
    ]


def test_a_message_larger_than_a_part_is_a_part() -> None:
    class Large(FakeLog):
        def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
            return start

    options = read_options(SourceOptions, _ANY | {"minOffsetsPerPartition": "1"})
    found = in_tasks([QueueRange("orders", 0, 5, 8)], options, Large({}))
    assert [(one.start, one.end) for task in found for one in task.ranges] == [(5, 6), (6, 7), (7, 8)]


def test_a_range_of_unknown_size_stays_whole() -> None:
    """Its read reports the fault, with failOnDataLoss and its other rules."""

    class Unknown(FakeLog):
        def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
            raise UnavailableError("away")

    options = read_options(SourceOptions, _ANY | {"minOffsetsPerPartition": "1"})
    whole = QueueRange("orders", 0, 5, 8)
    assert in_tasks([whole], options, Unknown({})) == [Task((whole,))]


_ANY = {"path": "/store", "subscribe": "orders"}
