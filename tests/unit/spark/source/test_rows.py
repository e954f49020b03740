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
from tidemark.client.received_message import TopicQueue
from tidemark.errors import ArgumentIllegalError
from tidemark.read.messages.message_columns import SCHEMA as MESSAGE_COLUMNS
from tidemark.spark.columns import SCHEMA, all_columns, parse_body_schema, require_schema
from tidemark.spark.source.rows import Rows, carrying

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
    """Return these of Spark's columns, in this order."""
    return StructType([SCHEMA[name] for name in names])


def test_messages_are_rows_of_all_columns() -> None:
    """Null stays null, and times are in UTC."""
    assert Rows(SCHEMA).batch(_QUEUE, message_batch(_MESSAGES)).to_pylist() == _ROWS


@pytest.mark.parametrize("name", _COLUMNS)
def test_each_column_has_sparks_type(name: str) -> None:
    """Spark refuses a batch with another type; the column may be the only one, and there may be no messages."""
    expected = to_arrow_schema(SCHEMA, timezone="UTC").field(name)
    for messages in (message_batch(_MESSAGES), message_batch([])):
        whole = Rows(SCHEMA).batch(_QUEUE, messages)
        alone = Rows(some_of_schema(name)).batch(_QUEUE, messages)
        assert (whole.schema.field(name), alone.schema.field(name)) == (expected, expected)
        assert alone.column(0).type == expected.type
        alone.validate(full=True)


@pytest.mark.parametrize("name", ["born_timestamp", "store_timestamp"])
def test_times_are_microseconds_in_utc(name: str) -> None:
    """Spark represents them in the same way."""
    assert Rows(SCHEMA).batch(_QUEUE, message_batch(_MESSAGES)).schema.field(name).type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "names",
    [["body"], ["topic"], ["store_timestamp", "queue_offset"], ["tag", "keys", "queue_id"], _COLUMNS[::-1]],
    ids=["body", "topic", "two", "three", "turned"],
)
def test_a_schema_may_name_some_columns_in_any_order(names: list[str]) -> None:
    """A column is the same as among all columns, and only the data that it is made of is needed."""
    schema = some_of_schema(*names)
    require_schema(schema)
    rows = Rows(schema)
    batch = rows.batch(_QUEUE, message_batch(_MESSAGES).select(sorted(rows.message_columns)))
    assert batch.schema.names == names
    assert batch.to_pylist() == [{name: row[name] for name in names} for row in _ROWS]


def test_a_slice_of_a_batch_gives_its_rows() -> None:
    """Messages after a range's end are cut off without a copy."""
    batch = Rows(SCHEMA).batch(_QUEUE, message_batch(_MESSAGES).slice(1, 2))
    batch.validate(full=True)
    assert batch.to_pylist() == _ROWS[1:]


# ── schemas ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_columns_of_messages_are_accepted() -> None:
    """All columns are accepted, whether or not the user declares them non-null."""
    require_schema(SCHEMA)
    require_schema(StructType([StructField("queue_offset", LongType(), nullable=False)]))


@pytest.mark.parametrize("name", ["value", "timestamp", "Body", "store_timestamp_ms", "flag"])
def test_an_unknown_column_is_refused(name: str) -> None:
    """The error names the column and lists the existing ones."""
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
    """Nothing is converted; the error names both types."""
    with pytest.raises(ArgumentIllegalError, match=f"column {name} has type {wanted}, not {kind.simpleString()}"):
        require_schema(StructType([SCHEMA["topic"], StructField(name, kind)]))


# ── fields of bodies ────────────────────────────────────────────────────────────────────────────────────────────────

_BODY_SCHEMA = parse_body_schema("carrier string, delay int, _corrupt_record string")


def with_bodies(*bodies: bytes) -> pa.RecordBatch:
    """Return messages 0, 1, … with these bodies."""
    rows = [FakeMessage(number).row() | {"body": body} for number, body in enumerate(bodies)]
    return pa.RecordBatch.from_pylist(rows, schema=MESSAGE_COLUMNS)


def test_body_fields_follow_the_message_columns() -> None:
    """For an invalid body they are null, and _corrupt_record has its text."""
    schema = all_columns(_BODY_SCHEMA)
    require_schema(schema, all_columns(_BODY_SCHEMA))
    batch = Rows(schema, _BODY_SCHEMA).batch(_QUEUE, with_bodies(b'{"carrier": "UA", "delay": 3}', b"plain", b"{}"))
    batch.validate(full=True)
    assert batch.schema.names == [*_COLUMNS, "carrier", "delay", "_corrupt_record"]
    found = [(row["queue_offset"], row["carrier"], row["delay"], row["_corrupt_record"]) for row in batch.to_pylist()]
    assert found == [(0, "UA", 3, None), (1, None, None, "plain"), (2, None, None, None)]


def test_body_fields_may_be_selected_with_other_columns() -> None:
    """The order does not matter; only the named fields of a body are parsed, but all for _corrupt_record."""
    messages = with_bodies(b'{"carrier": "UA", "delay": "late"}')
    few = StructType([_BODY_SCHEMA["carrier"], SCHEMA["queue_id"]])
    require_schema(few, all_columns(_BODY_SCHEMA))
    rows = Rows(few, _BODY_SCHEMA)
    assert rows.message_columns == {"queue_offset", "body"}
    assert rows.batch(_QUEUE, messages).to_pylist() == [{"carrier": "UA", "queue_id": 3}]
    told = StructType([_BODY_SCHEMA["_corrupt_record"]])
    assert Rows(told, _BODY_SCHEMA).batch(_QUEUE, messages).to_pylist() == [
        {"_corrupt_record": '{"carrier": "UA", "delay": "late"}'}
    ]


def test_an_invalid_body_is_an_error_with_fail_fast() -> None:
    """The error names the message; if no field is read, bodies are not parsed."""
    messages = with_bodies(b"{}", b'{"delay": "late"}', b"")
    with pytest.raises(ArgumentIllegalError, match="at offset 1 of queue 3 of orders is not a JSON object") as refused:
        Rows(all_columns(_BODY_SCHEMA), _BODY_SCHEMA, fail_fast=True).batch(_QUEUE, messages)
    assert refused.value.argument == "bodySchema"
    assert Rows(SCHEMA, _BODY_SCHEMA, fail_fast=True).batch(_QUEUE, messages).num_rows == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("price double, tag string", "tag is a column of every message; read that field with from_json"),
        ("Topic string", "Topic is a column of every message"),
        ("a int, _corrupt_record binary", "the type binary"),
        ("a int, _corrupt_record int", "_corrupt_record must be a string"),
        ("_corrupt_record string", "must name at least one field"),
        ("a map<string,int>", "the type map"),
    ],
)
def test_an_invalid_body_schema_is_refused(text: str, told: str) -> None:
    """The error gives the reason."""
    with pytest.raises(ValueError, match=told):
        parse_body_schema(text)


def test_a_schema_with_an_undeclared_body_field_is_refused() -> None:
    """Only fields of bodySchema are allowed, with their types."""
    for field in (StructField("delay", LongType()), StructField("late", IntegerType())):
        with pytest.raises(ArgumentIllegalError, match=field.name):
            require_schema(StructType([field]), all_columns(_BODY_SCHEMA))


# ── keys ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    keys=st.lists(st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=3), max_size=8),
    first=st.integers(0, 4),
    key=st.sampled_from(["a", "b", "nope"]),
)
def test_messages_with_a_key_are_found(keys: list[list[str]], first: int, key: str) -> None:
    """Each is found once, in order, even if it has the key twice or the batch is a slice."""
    messages = [FakeMessage(offset, keys=tuple(own)) for offset, own in enumerate(keys)]
    found = carrying(message_batch(messages).slice(first), key)
    assert found.to_pylist() == message_batch(one for one in messages[first:] if key in one.keys).to_pylist()
