"""Ranges of queues, and their division."""

from __future__ import annotations

import itertools
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.received_message import TopicQueue
from tidemark.spark.source.ranges import QueueRange, split
from tidemark.spark.source.tasks import Task


@st.composite
def _ranges(draw: st.DrawFn) -> list[QueueRange]:
    """Draw ranges of different queues, some of them empty."""
    spans = draw(st.lists(st.tuples(st.integers(0, 1 << 60), st.integers(0, 60)), max_size=6))
    return [QueueRange("orders", number, start, start + count) for number, (start, count) in enumerate(spans)]


@given(ranges=_ranges(), least=st.none() | st.integers(1, 80))
def test_split_ranges_cover_the_original_ranges(ranges: list[QueueRange], least: int | None) -> None:
    """There is no gap, overlap or empty range; each queue's are in order, and their lengths differ by at most one."""
    parts = split(ranges, least)
    assert all(part.count > 0 for part in parts)
    for whole in ranges:
        own = [part for part in parts if part.queue == whole.queue]
        edges = [(part.start, part.end) for part in own]
        assert all(left[1] == right[0] for left, right in itertools.pairwise(edges))
        assert not own or (edges[0][0], edges[-1][1]) == (whole.start, whole.end)
        assert sum(part.count for part in own) == whole.count
        assert max((part.count for part in own), default=0) - min((part.count for part in own), default=0) <= 1


@given(ranges=_ranges(), least=st.integers(1, 80))
def test_split_returns_at_least_the_requested_number_of_ranges(ranges: list[QueueRange], least: int) -> None:
    """If there are fewer messages, there is one range for each."""
    assert len(split(ranges, least)) >= min(least, sum(whole.count for whole in ranges))


@given(ranges=_ranges())
def test_ranges_are_not_split_without_need(ranges: list[QueueRange]) -> None:
    """Each queue with messages has one range, even if that is already the requested number."""
    filled = [whole for whole in ranges if whole.count]
    assert split(ranges, None) == filled
    assert split(ranges, max(1, len(filled))) == filled


def test_a_long_queue_is_split_more_often() -> None:
    """The numbers are proportional, as in Kafka's connector."""
    ranges = [QueueRange("orders", 0, 50, 150), QueueRange("orders", 1, 0, 300)]
    expected = [("orders", 0, 50, 150), ("orders", 1, 0, 100), ("orders", 1, 100, 200), ("orders", 1, 200, 300)]
    assert split(ranges, 4) == [QueueRange(*one) for one in expected]


@pytest.mark.parametrize("least", [None, 1, 7])
def test_empty_ranges_are_split_into_none(least: int | None) -> None:
    """This covers no ranges and empty ranges."""
    assert split([], least) == []
    assert split([QueueRange("orders", 0, 7, 7)], least) == []


def test_a_range_has_its_queue_and_length() -> None:
    """Its end is exclusive."""
    one = QueueRange("orders", 2, 10, 15)
    assert (one.queue, one.count) == (TopicQueue("orders", 2), 5)


def test_a_task_with_ranges_can_be_pickled() -> None:
    """Spark pickles partitions."""
    one = Task((QueueRange("orders", 2, 10, 15),))
    assert pickle.loads(pickle.dumps(one)) == one
