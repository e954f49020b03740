"""Ranges of messages with a key, reduced by the key index."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.fake_log import FakeLog, FakeMessage
from tidemark.client.received_message import TopicQueue
from tidemark.spark.source.keyed_ranges import with_places
from tidemark.spark.source.ranges import QueueRange, split

_WHOLE = [QueueRange("orders", 0, 0, 100), QueueRange("orders", 1, 20, 40), QueueRange("events", 0, 0, 100)]


def log_with(places: dict[TopicQueue, list[int]]) -> FakeLog:
    """Return a log of messages at 0, 10, … 90 of each queue; those at *places* carry the key k.

    The index also returns 10 and 80.
    """
    return FakeLog(
        {
            one.queue: [
                FakeMessage(n, keys=("k",) if n in places.get(one.queue, []) else ()) for n in range(0, 100, 10)
            ]
            for one in _WHOLE
        }
    )


def test_ranges_get_the_offsets_of_a_key_or_are_omitted() -> None:
    """The places include messages with another key, but none outside of the range."""
    log = log_with({TopicQueue("orders", 0): [20, 90], TopicQueue("orders", 1): [0, 40], TopicQueue("events", 0): []})
    assert with_places(_WHOLE, log, "k", most=100) == [
        replace(_WHOLE[0], places=(10, 20, 80, 90)),
        replace(_WHOLE[2], places=(10, 80)),
    ]


def test_ranges_stay_whole_without_known_offsets() -> None:
    """Only one topic has too many places; the other's ranges are reduced."""
    log = log_with({TopicQueue("orders", 0): [0, 20, 30]})
    assert with_places(_WHOLE, log, "k", most=3) == [*_WHOLE[:2], replace(_WHOLE[2], places=(10, 80))]
    log.knows_keys = False
    assert with_places(_WHOLE, log, "k", most=100) == _WHOLE


@given(places=st.lists(st.integers(0, 3000), unique=True).map(sorted))
def test_nearby_offsets_are_read_together(places: list[int]) -> None:
    """All of them are read once, in order; a gap of more than 64 is skipped."""
    spans = QueueRange("orders", 0, 0, 3001, tuple(places)).spans
    assert [place for start, end in spans for place in places if start <= place < end] == places
    assert all(start in places and end - 1 in places for start, end in spans)
    assert all(later - end >= 64 for (_, end), (later, _) in itertools.pairwise(spans))


def test_a_range_with_key_offsets_is_not_split() -> None:
    """Ranges without key offsets are split."""
    told = replace(_WHOLE[0], places=(1, 99))
    parts = split([told, _WHOLE[2]], 4)
    assert parts[0] == told
    assert [part.places for part in parts[1:]] == [None] * 4
