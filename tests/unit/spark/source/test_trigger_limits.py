"""The limits on the data of one trigger."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.received_message import TopicQueue
from tidemark.spark.source.trigger_limits import within_bytes, within_messages

_QUEUES = [TopicQueue("orders", queue_id) for queue_id in range(6)]
_STARTS = st.lists(st.integers(0, 1 << 40), min_size=6, max_size=6)
_COUNTS = st.lists(st.just(0) | st.integers(0, 30) | st.integers(0, 1 << 40), min_size=1, max_size=6)
_SIZES = st.lists(st.lists(st.integers(1, 50), max_size=12), min_size=1, max_size=6)


def offsets(values: list[int]) -> dict[TopicQueue, int]:
    """Return *values* by queue."""
    return dict(zip(_QUEUES, values, strict=False))


class Sized:
    """Queues of messages with these sizes, the first one at its queue's start."""

    def __init__(self, starts: list[int], sizes: list[list[int]]) -> None:
        self.starts = offsets(starts[: len(sizes)])
        self.ends = offsets([start + len(of_queue) for start, of_queue in zip(starts, sizes, strict=False)])
        self._sizes = dict(zip(_QUEUES, sizes, strict=False))
        self.asked: list[TopicQueue] = []

    def bytes_to(self, queue: TopicQueue, end: int) -> int:
        """Return the bytes of all messages below *end*."""
        return sum(self._sizes[queue][: end - self.starts[queue]])

    def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
        """Return the exact end, as a log does."""
        assert start == self.starts[queue]
        self.asked.append(queue)
        sums = itertools.accumulate(self._sizes[queue][: end - start])
        return start + sum(size <= max_bytes for size in sums)


@given(starts=_STARTS, counts=_COUNTS, most=st.integers(1, 100) | st.integers(1, 1 << 41))
def test_the_limit_is_held_exactly_and_shares_are_fair(starts: list[int], counts: list[int], most: int) -> None:
    """Each share differs from the exact proportion by less than one message; without a limit all is taken."""
    total = sum(counts)
    begins, ends = offsets(starts[: len(counts)]), offsets([a + b for a, b in zip(starts, counts, strict=False)])
    given_ends = within_messages(begins, ends, most)
    assert given_ends.keys() == ends.keys()
    taken = [given_ends[queue] - begins[queue] for queue in ends]
    assert sum(taken) == min(total, most)
    assert all(0 <= taken_of <= count for taken_of, count in zip(taken, counts, strict=True))
    if total > most:
        shares = [Fraction(most * count, total) for count in counts]
        assert all(abs(taken_of - share) < 1 for taken_of, share in zip(taken, shares, strict=True))


@pytest.mark.parametrize(
    ("counts", "most", "taken"),
    [
        ([100, 300], 40, [10, 30]),
        ([1000, 1], 100, [99, 1]),
        ([3, 4], 7, [3, 4]),
        ([0, 9], 6, [0, 6]),
    ],
    ids=["in proportion", "a small one", "just enough", "an empty one"],
)
def test_the_message_limit_is_shared_proportionally(counts: list[int], most: int, taken: list[int]) -> None:
    """The values are calculated by hand."""
    starts = offsets([1000] * len(counts))
    found = within_messages(starts, offsets([1000 + count for count in counts]), most)
    assert found == offsets([1000 + count for count in taken])


@pytest.mark.parametrize("most", [1, 2, 5])
def test_more_queues_than_the_limit_take_turns(most: int) -> None:
    """A short queue is not skipped for ever, though the others are refilled continually."""
    starts, little = offsets([0] * 6), _QUEUES[3]
    for _ in range(60):
        ends = {queue: start + (1 if queue == little else 1000) for queue, start in starts.items()}
        following = within_messages(starts, ends, most)
        assert sum(following.values()) - sum(starts.values()) == most
        starts = following
    assert all(start > 0 for start in starts.values())


def test_a_queue_that_went_back_does_not_affect_the_shares_of_others() -> None:
    """With failOnDataLoss=false its end is below its start, and reading continues there, as in Kafka's source."""
    starts, ends = offsets([1000, 0, 0]), offsets([100, 1000, 3000])
    assert within_messages(starts, ends, 400) == offsets([100, 100, 300])


@given(starts=_STARTS, sizes=_SIZES, most=st.integers(0, 300))
def test_the_byte_limit_is_shared_and_at_least_one_message_is_taken(
    starts: list[int], sizes: list[list[int]], most: int
) -> None:
    """The total is within the limit, or a single larger message; nothing is below a start or beyond an end."""
    built = Sized(starts, sizes)
    ends = within_bytes(built.starts, built.ends, most, built.end_within)
    assert ends.keys() == built.ends.keys()
    taken = {queue: ends[queue] - built.starts[queue] for queue in ends}
    assert all(0 <= taken[queue] <= built.ends[queue] - built.starts[queue] for queue in ends)
    if any(sizes):
        assert sum(taken.values()) >= 1
    assert sum(built.bytes_to(queue, ends[queue]) for queue in ends) <= most or sum(taken.values()) == 1


@given(starts=_STARTS, sizes=_SIZES, most=st.integers(0, 300))
def test_each_queue_gives_the_messages_that_fit_its_byte_share(
    starts: list[int], sizes: list[list[int]], most: int
) -> None:
    """The share is proportional to the bytes of its messages."""
    built = Sized(starts, sizes)
    ends = within_bytes(built.starts, built.ends, most, built.end_within)
    counts = {queue: built.ends[queue] - built.starts[queue] for queue in ends}
    shares = {queue: most * count // max(sum(counts.values()), 1) for queue, count in counts.items()}
    expected = {queue: built.end_within(queue, built.starts[queue], built.ends[queue], shares[queue]) for queue in ends}
    if expected != built.starts:
        assert ends == expected


def test_the_longest_queue_gives_one_oversized_message() -> None:
    """Otherwise a stream would never progress."""
    built = Sized([10, 20, 30], [[500], [500, 1], []])
    assert within_bytes(built.starts, built.ends, 100, built.end_within) == offsets([10, 21, 30])


def test_without_new_messages_offsets_do_not_move() -> None:
    """The log is not asked for sizes."""
    built = Sized([10, 20], [[], []])
    assert within_bytes(built.starts, built.ends, 100, built.end_within) == built.starts
    assert built.asked == []


def test_a_queue_that_went_back_continues_at_its_end() -> None:
    """Otherwise messages written from there would never be read; the other queues are not affected."""
    built = Sized([1000, 0], [[], [10, 10, 10]])
    ends = built.ends | {_QUEUES[0]: 100}
    assert within_bytes(built.starts, ends, 20, built.end_within) == offsets([100, 2])
    assert within_bytes(built.starts, ends, 5, built.end_within) == offsets([100, 1])
