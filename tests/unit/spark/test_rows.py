"""Messages as Spark's columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from tests.unit.spark.fake_log import FakeMessage, message_batch
from tidemark.client.received import TopicQueue
from tidemark.errors import ArgumentIllegalError
from tidemark.spark.rows import SCHEMA, Rows, carrying, require_schema

_QUEUE = TopicQueue("orders", 3)
_MESSAGES = [
    FakeMessage(7, 1_767_225_600_001, "A", ("k1", "k2")),
    FakeMessage(8, 0),
    FakeMessage(9, 4_102_444_799_999, "B", ("k2",)),
]
_ROWS: list[dict[str, Any]] = [
    {
        "topic": "orders",
        "queue_id": 3,
        "queue_offset": 7,
        "physical_offset": 700,
        "keys": ["k1", "k2"],
        "tag": "A",
        "body": b"m7",
        "properties": [("color", "red")],
        "born_timestamp": datetime(2026, 1, 1, tzinfo=UTC),
        "store_timestamp": datetime(2026, 1, 1, microsecond=1000, tzinfo=UTC),
        "message_id": "id7",
        "offset_msg_id": None,
    },
    {
        "topic": "orders",
        "queue_id": 3,
        "queue_offset": 8,
        "physical_offset": 800,
        "keys": [],
        "tag": None,
        "body": b"m8",
        "properties": [("color", "red")],
        "born_timestamp": datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC),
        "store_timestamp": datetime(1970, 1, 1, tzinfo=UTC),
        "message_id": "id8",
        "offset_msg_id": None,
    },
    {
        "topic": "orders",
        "queue_id": 3,
        "queue_offset": 9,
        "physical_offset": 900,
        "keys": ["k2"],
        "tag": "B",
        "body": b"m9",
        "properties": [("color", "red")],
        "born_timestamp": datetime(2099, 12, 31, 23, 59, 59, 998_000, UTC),
        "store_timestamp": datetime(2099, 12, 31, 23, 59, 59, 999_000, UTC),
        "message_id": "id9",
        "offset_msg_id": None,
    },
]
_COLUMNS = list(_ROWS[0])


def some_of_schema(*names: str) -> StructType:
    """These of Spark's columns, in this order."""
    return StructType([SCHEMA[name] for name in names])


def test_messages_are_rows_of_all_columns() -> None:
    """Null is null, and times are in UTC."""
    assert Rows(SCHEMA).batch(_QUEUE, message_batch(_MESSAGES)).to_pylist() == _ROWS


@pytest.mark.parametrize("name", _COLUMNS)
def test_a_columns_type_is_sparks(name: str) -> None:
    """Spark refuses a batch with any other; also where it is the only column, and without messages."""
    expected = to_arrow_schema(SCHEMA, timezone="UTC").field(name)
    for messages in (message_batch(_MESSAGES), message_batch([])):
        whole = Rows(SCHEMA).batch(_QUEUE, messages)
        alone = Rows(some_of_schema(name)).batch(_QUEUE, messages)
        assert (whole.schema.field(name), alone.schema.field(name)) == (expected, expected)
        assert alone.column(0).type == expected.type
        alone.validate(full=True)


@pytest.mark.parametrize("name", ["born_timestamp", "store_timestamp"])
def test_times_are_microseconds_in_utc(name: str) -> None:
    """As Spark has them itself."""
    assert Rows(SCHEMA).batch(_QUEUE, message_batch(_MESSAGES)).schema.field(name).type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "names",
    [["body"], ["topic"], ["store_timestamp", "queue_offset"], ["tag", "keys", "queue_id"], _COLUMNS[::-1]],
    ids=["body", "topic", "two", "three", "turned"],
)
def test_a_schema_may_name_some_columns_in_any_order(names: list[str]) -> None:
    """They are the same as among all of them."""
    schema = some_of_schema(*names)
    require_schema(schema)
    batch = Rows(schema).batch(_QUEUE, message_batch(_MESSAGES))
    assert batch.schema.names == names
    assert batch.to_pylist() == [{name: row[name] for name in names} for row in _ROWS]


def test_a_part_of_a_batch_is_its_rows() -> None:
    """Messages beyond a range's end are cut off without a copy."""
    batch = Rows(SCHEMA).batch(_QUEUE, message_batch(_MESSAGES).slice(1, 2))
    batch.validate(full=True)
    assert batch.to_pylist() == _ROWS[1:]


# ── schemas ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_columns_of_messages_are_accepted() -> None:
    """All of them, and whether or not a user says that they are never null."""
    require_schema(SCHEMA)
    require_schema(StructType([StructField("queue_offset", LongType(), nullable=False)]))


@pytest.mark.parametrize("name", ["value", "timestamp", "Body", "store_timestamp_ms", "flag"])
def test_a_column_that_messages_have_not_is_refused(name: str) -> None:
    """The refusal names it, and those they have."""
    schema = StructType([SCHEMA["body"], StructField(name, LongType())])
    with pytest.raises(ArgumentIllegalError, match=f"no column {name}; .*queue_offset.*offset_msg_id"):
        require_schema(schema)


@pytest.mark.parametrize(
    ("name", "kind", "wanted"),
    [
        ("body", StringType(), "binary"),
        ("queue_id", LongType(), "int"),
        ("queue_offset", IntegerType(), "bigint"),
        ("tag", BinaryType(), "string"),
        ("keys", StringType(), "array<string>"),
        ("keys", ArrayType(BinaryType()), "array<string>"),
        ("properties", MapType(StringType(), BinaryType()), "map<string,string>"),
        ("store_timestamp", LongType(), "timestamp"),
        ("born_timestamp", TimestampNTZType(), "timestamp"),
    ],
)
def test_a_column_of_another_type_is_refused(name: str, kind: DataType, wanted: str) -> None:
    """Nothing is converted; the refusal tells both types."""
    with pytest.raises(ArgumentIllegalError, match=f"column {name} is {wanted}, not {kind.simpleString()}"):
        require_schema(StructType([SCHEMA["topic"], StructField(name, kind)]))


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    keys=st.lists(st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=3), max_size=8),
    first=st.integers(0, 4),
    key=st.sampled_from(["a", "b", "nope"]),
)
def test_messages_that_carry_a_key_are_found(keys: list[list[str]], first: int, key: str) -> None:
    """Each once, in order, also where it carries the key twice or the batch is a part of another."""
    messages = [FakeMessage(offset, keys=tuple(own)) for offset, own in enumerate(keys)]
    found = carrying(message_batch(messages).slice(first), key)
    assert found.to_pylist() == message_batch(one for one in messages[first:] if key in one.keys).to_pylist()
