"""Offsets of a stream in the form that a checkpoint has."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.received_message import TopicQueue
from tidemark.spark.option_values import parse_offsets
from tidemark.spark.source.stream_offsets import from_json, to_json

_OFFSETS = st.dictionaries(
    st.builds(TopicQueue, st.text(min_size=1, max_size=5), st.integers(0, 20)), st.integers(0, (1 << 63) - 1)
)


def test_stream_offsets_are_written_in_kafkas_format() -> None:
    """They are sorted by topic, then by queue number; queue 10 follows queue 9."""
    offsets = {TopicQueue("b", 10): 3, TopicQueue("b", 9): 2, TopicQueue("a", 0): 1}
    assert json.dumps(to_json(offsets)) == '{"a": {"0": 1}, "b": {"9": 2, "10": 3}}'


@given(offsets=_OFFSETS)
def test_stream_offsets_survive_json(offsets: dict[TopicQueue, int]) -> None:
    """They pass through the JSON that Spark makes of them."""
    assert from_json(json.loads(json.dumps(to_json(offsets)))) == offsets


@given(offsets=_OFFSETS)
def test_equal_stream_offsets_have_equal_json(offsets: dict[TopicQueue, int]) -> None:
    """Spark compares the texts to find out whether there is new data."""
    turned = dict(reversed(offsets.items()))
    assert json.dumps(to_json(turned)) == json.dumps(to_json(offsets))


def test_stream_offsets_are_valid_starting_offsets() -> None:
    """Offsets of a checkpoint are valid startingOffsets."""
    text = json.dumps(to_json({TopicQueue("a", 0): 1, TopicQueue("b", 2): 0}))
    assert parse_offsets(text) == {"a": {0: 1}, "b": {2: 0}}
