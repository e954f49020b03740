"""Offsets of a stream in the form that a checkpoint has."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.received_message import StoreQueue, TopicQueue
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


def test_offsets_of_several_stores_name_the_stores() -> None:
    a, b = "http://a:8080", "http://b:8080"
    offsets: dict[TopicQueue, int] = {StoreQueue("t", 0, b): 2, StoreQueue("t", 1, a): 3, StoreQueue("t", 0, a): 1}
    written = to_json(offsets)
    assert json.dumps(written) == json.dumps({a: {"t": {"0": 1, "1": 3}}, b: {"t": {"0": 2}}})
    assert from_json(written, [a, b]) == offsets
    assert from_json(written) == offsets, "of fewer stores, for an error that names them"


def test_offsets_without_a_store_are_those_of_the_first() -> None:
    """The stream had one store when it began."""
    assert from_json({"t": {"0": 1}}, ["http://a", "http://b"]) == {StoreQueue("t", 0, "http://a"): 1}


def test_stream_offsets_are_valid_starting_offsets() -> None:
    """Offsets of a checkpoint are valid startingOffsets."""
    text = json.dumps(to_json({TopicQueue("a", 0): 1, TopicQueue("b", 2): 0}))
    assert parse_offsets(text) == {"a": {0: 1}, "b": {2: 0}}
