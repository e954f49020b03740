"""Rows of a DataFrame as messages: the slices and the fields."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError, TopicIllegalError
from tidemark.format.properties import encode_properties
from tidemark.spark.sink import sink_rows
from tidemark.spark.sink.sink_rows import by_topic, message_table, require_sink_schema, slices

_PROPERTIES = pa.map_(pa.string(), pa.string())


def batches(bodies: Sequence[bytes], cuts: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Yield *bodies* in batches that end at *cuts*."""
    edges = [0, *sorted(cuts), len(bodies)]
    for start, end in itertools.pairwise(edges):
        yield pa.RecordBatch.from_arrays([pa.array(bodies[start:end], pa.binary())], names=["body"])


@given(sizes=st.lists(st.integers(0, 40), max_size=60), data=st.data())
def test_slices_of_rows_do_not_depend_on_the_batches(sizes: list[int], data: st.DataObject) -> None:
    """Every row comes once, in order; a slice has at most its limit of rows, and ends once it is full."""
    bodies = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sink_rows, "SLICE_ROWS", 7)
        patch.setattr(sink_rows, "SLICE_BYTES", 100)
        whole = [table["body"].to_pylist() for table in slices(batches(bodies, []))]
        cuts = data.draw(st.lists(st.integers(0, len(bodies)), max_size=5))
        assert [table["body"].to_pylist() for table in slices(batches(bodies, cuts))] == whole
    assert [body for one in whole for body in one] == bodies
    for one in whole:
        assert 1 <= len(one) <= 7
        assert sum(map(len, one[:-1])) < 100
    for one in whole[:-1]:
        assert len(one) == 7 or sum(map(len, one)) >= 100


_NAME = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), min_size=1, max_size=5).filter(
    lambda name: name not in ("TAGS", "KEYS", "UNIQ_KEY")
)


@given(st.lists(st.none() | st.dictionaries(_NAME, st.none() | _NAME, max_size=3), min_size=1, max_size=8))
def test_properties_are_encoded_as_in_the_log(rows: list[Mapping[str, str | None] | None]) -> None:
    """This holds for a slice of an array too; null means no properties."""
    maps = pa.array([None if row is None else list(row.items()) for row in [{}, *rows]], _PROPERTIES)
    table = pa.table({"body": [b"x"] * (len(rows) + 1), "properties": maps}).slice(1)
    messages, _ = message_table(table, pa.array(["id"] * len(rows)))
    for written, row in zip(messages["properties"].to_pylist(), rows, strict=True):
        wanted = {name: value for name, value in (row or {}).items() if value is not None}
        assert (written or "").encode() == encode_properties(wanted)


@pytest.mark.parametrize("entries", [{"a": ""}, {"a": "x\x01"}, {"a\x02": "x"}, {"": "x"}, {"KEYS": "k"}])
def test_invalid_properties_are_refused(entries: dict[str, str]) -> None:
    """The error comes before anything is sent."""
    table = pa.table({"body": [b"x"], "properties": pa.array([list(entries.items())], _PROPERTIES)})
    with pytest.raises(PropertiesIllegalError):
        message_table(table, pa.array(["id"]))


def test_keys_are_joined_with_spaces_and_may_contain_none() -> None:
    """This is the form of KEYS."""
    keys = pa.array([["a", "b"], [], None], pa.list_(pa.string()))
    messages, several = message_table(pa.table({"body": [b"x"] * 3, "keys": keys}), pa.array(["id"] * 3))
    assert several
    assert [key or "" for key in messages["key"].to_pylist()] == ["a b", "", ""]
    with pytest.raises(PropertiesIllegalError, match="space"):
        message_table(pa.table({"body": [b"x"], "keys": [["a b"]]}), pa.array(["id"]))


def test_topics_are_written_in_the_order_of_their_first_rows() -> None:
    """Rows of one topic keep their order; a row without a topic is refused; the option overrides the column."""
    table = pa.table({"body": ["1", "2", "3"], "topic": ["b", "a", "b"]})
    parts = [(name, part["body"].to_pylist()) for name, part in by_topic(table, None)]
    assert parts == [("b", ["1", "3"]), ("a", ["2"])]
    assert [(name, part.num_rows) for name, part in by_topic(table, "all")] == [("all", 3)]
    with pytest.raises(TopicIllegalError):
        list(by_topic(pa.table({"body": ["1"], "topic": pa.array([None], pa.string())}), None))


@pytest.mark.parametrize(
    ("names", "topic", "told"),
    [
        (["body", "key", "keys"], "t", "column keys must have type array<string>"),
        (["topic"], None, "column body is missing"),
        (["body"], None, "option topic"),
        (["body", "price"], "t", "no column price"),
    ],
)
def test_columns_that_do_not_form_messages_are_refused(names: list[str], topic: str | None, told: str) -> None:
    """The error comes when the query is planned."""
    schema = StructType([StructField(name, StringType()) for name in names])
    with pytest.raises(ArgumentIllegalError, match=told):
        require_sink_schema(schema, topic)
    with pytest.raises(ArgumentIllegalError, match="binary or string, not int"):
        require_sink_schema(StructType([StructField("body", IntegerType())]), "t")


@pytest.mark.parametrize("key", [None, "", "a b", "tab\t", "new\nline"])
def test_a_key_that_would_be_lost_is_refused_with_its_row(key: str | None) -> None:
    """A null among the keys would drop all of them, and a lookup could not find the others."""
    table = pa.table(
        {
            "body": [b"x"] * 3,
            "keys": pa.array([["k"], None, ["k", key]], pa.list_(pa.string())),
            "row": [100, 101, 102],
        }
    )
    with pytest.raises(PropertiesIllegalError, match="row 102 of this task has the key") as raised:
        message_table(table, pa.array(["id"] * 3))
    assert raised.value.facts["row"] == 102
