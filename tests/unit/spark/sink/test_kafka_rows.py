"""Rows with the columns of Spark's Kafka sink as the sink's own columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tests.unit.spark.fake_log import FakeMessage
from tidemark.client.received_message import TopicQueue
from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError
from tidemark.read.messages.message_columns import SCHEMA as MESSAGE_COLUMNS
from tidemark.spark.columns import KAFKA_SCHEMA
from tidemark.spark.sink.kafka_rows import own_columns
from tidemark.spark.sink.sink_rows import by_partition, message_table, require_sink_schema
from tidemark.spark.source.kafka_rows import KafkaRows

_HEADERS = to_arrow_schema(KAFKA_SCHEMA, timezone="UTC").field("headers").type


def batch(keys: list[bytes | str | None], headers: list[list[tuple[str, bytes | None]] | None]) -> pa.RecordBatch:
    """Return rows with these keys and headers."""
    entries = [None if one is None else [{"key": key, "value": value} for key, value in one] for one in headers]
    return pa.RecordBatch.from_pydict(
        {"key": keys, "value": pa.array([b"v"] * len(keys), pa.binary()), "headers": pa.array(entries, _HEADERS)}
    )


def test_headers_become_properties_tag_and_keys() -> None:
    """A null header has no value, so it is none; KEYS replaces the key; an empty key is none."""
    found = own_columns(
        batch(
            [b"k1", b"k2", None, b""],
            [[("x", b"1"), ("TAGS", b"A"), ("y", None)], [("KEYS", b"k2 k3")], None, [("z", "ü".encode())]],
        )
    )
    messages, several = message_table(pa.Table.from_batches([found]), pa.array(["id"] * 4))
    assert several
    assert messages["body"].to_pylist() == [b"v"] * 4
    assert [key or "" for key in messages["key"].to_pylist()] == ["k1", "k2 k3", "", ""]
    assert messages["tag"].to_pylist() == ["A", None, None, None]
    assert messages["properties"].to_pylist() == ["x\x011\x02", "", "", "z\x01ü\x02"]


@pytest.mark.parametrize(
    ("keys", "headers", "told"),
    [
        ([b"\xff"], [None], "key: must be UTF-8 text"),
        ([None], [[("x", b"\xff")]], "headers: must be UTF-8 text"),
        ([None], [[("TAGS", b"\xff")]], "header TAGS: must be UTF-8 text"),
        (["a b"], [None], "the key 'a b' contains a space"),
        ([None, None], [[("x", b"1")], [("x", b"1"), ("y", b"1"), ("x", b"2")]], "several headers 'x'"),
    ],
)
def test_rows_that_no_message_can_have_are_refused(
    keys: list[bytes | str | None], headers: list[list[tuple[str, bytes | None]] | None], told: str
) -> None:
    """Kafka stores them; here a conversion would change them."""
    with pytest.raises(PropertiesIllegalError, match=told):
        own_columns(batch(keys, headers))


_TEXT = st.text("abü", min_size=1, max_size=3)
_MESSAGE = st.tuples(st.lists(_TEXT, max_size=3), st.none() | _TEXT, st.dictionaries(_TEXT, _TEXT, max_size=3))


@given(given=st.lists(_MESSAGE, max_size=8), cut=st.integers(0, 8))
def test_rows_of_the_source_give_their_messages(
    given: list[tuple[list[str], str | None, dict[str, str]]], cut: int
) -> None:
    """The sink is the source's inverse, also for a slice of a batch."""
    messages = [
        FakeMessage(number).row() | {"keys": keys, "tag": tag, "properties": list(properties.items())}
        for number, (keys, tag, properties) in enumerate(given)
    ]
    rows = KafkaRows(KAFKA_SCHEMA).batch(
        TopicQueue("orders", 3), pa.RecordBatch.from_pylist(messages, schema=MESSAGE_COLUMNS)
    )
    found = own_columns(rows.slice(cut)).to_pylist()
    assert [
        (one["body"], one["topic"], one["partition"], one["keys"] or [], one["tag"], dict(one["properties"]))
        for one in found
    ] == [
        (b"m%d" % number, "orders", 3, keys, tag, properties)
        for number, (keys, tag, properties) in enumerate(given)
        if number >= cut
    ]


def test_rows_are_divided_by_partition() -> None:
    """A null is any queue; rows keep their order."""
    table = pa.table({"body": ["a", "b", "c", "d"], "partition": pa.array([1, None, 0, 1], pa.int32())})
    assert [(queue_id, part["body"].to_pylist()) for queue_id, part in by_partition(table)] == [
        (1, ["a", "d"]),
        (None, ["b"]),
        (0, ["c"]),
    ]
    assert [queue_id for queue_id, _ in by_partition(table.drop_columns(["partition"]))] == [None]


def test_only_kafkas_columns_are_accepted() -> None:
    """All columns that a read from Kafka has are, so that a topic can be copied."""
    require_sink_schema(KAFKA_SCHEMA, None, kafka_columns=True)
    require_sink_schema(StructType([StructField("value", StringType())]), "orders", kafka_columns=True)
    for name, kind, told in (
        ("body", StringType(), r"no column body; columns: key, value, .*alias\('value'\)"),
        ("key", StringType(), "the column value is missing"),
        ("value", IntegerType(), "column value must have type binary or string, not int"),
    ):
        with pytest.raises(ArgumentIllegalError, match=told):
            require_sink_schema(StructType([StructField(name, kind)]), "orders", kafka_columns=True)
