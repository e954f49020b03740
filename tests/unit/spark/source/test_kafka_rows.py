"""Messages as the columns of Spark's Kafka source."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tests.unit.spark.fake_log import FakeMessage
from tidemark.client.received_message import TopicQueue
from tidemark.read.messages.message_columns import SCHEMA as MESSAGE_COLUMNS
from tidemark.spark.columns import KAFKA_SCHEMA, kafka_columns
from tidemark.spark.source.kafka_rows import KafkaRows

_QUEUE = TopicQueue("orders", 3)
# The table "Each row in the source has the following schema" of Spark's Kafka integration guide.
_DOCUMENTED = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    "headers": "array<struct<key:string,value:binary>>",
}


def messages(*rows: tuple[list[str], str | None, dict[str, str]]) -> pa.RecordBatch:
    """Return messages 0, 1, … with these keys, tags and properties."""
    given = [
        FakeMessage(number, 1000 * number).row() | {"keys": keys, "tag": tag, "properties": list(properties.items())}
        for number, (keys, tag, properties) in enumerate(rows)
    ]
    return pa.RecordBatch.from_pylist(given, schema=MESSAGE_COLUMNS)


def test_the_columns_are_those_of_sparks_documentation() -> None:
    """`headers` is the last one, and is there only on request, as in Kafka's source."""
    assert {field.name: field.dataType.simpleString() for field in KAFKA_SCHEMA} == _DOCUMENTED
    assert kafka_columns(include_headers=True).names == list(_DOCUMENTED)
    assert kafka_columns(include_headers=False).names == list(_DOCUMENTED)[:-1]


def test_messages_are_rows_of_all_columns() -> None:
    """The first key is the key; headers are the properties, the tag, and several keys; without any they are null."""
    rows = KafkaRows(KAFKA_SCHEMA).batch(
        _QUEUE, messages((["k1", "k2"], "A", {"x": "1", "y": "2"}), ([], None, {}), (["ü"], None, {"x": "é"}))
    )
    same = {"topic": "orders", "partition": 3, "timestampType": 1}
    assert rows.to_pylist() == [
        same
        | {"key": b"k1", "value": b"m0", "offset": 0, "timestamp": datetime(1970, 1, 1, tzinfo=UTC)}
        | {"headers": [_header("x", "1"), _header("y", "2"), _header("TAGS", "A"), _header("KEYS", "k1 k2")]},
        same
        | {"key": None, "value": b"m1", "offset": 1, "timestamp": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}
        | {"headers": None},
        same
        | {"key": "ü".encode(), "value": b"m2", "offset": 2, "timestamp": datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)}
        | {"headers": [_header("x", "é")]},
    ]


def _header(key: str, value: str) -> dict[str, str | bytes]:
    return {"key": key, "value": value.encode()}


@pytest.mark.parametrize("name", list(_DOCUMENTED))
def test_a_column_alone_needs_only_its_own_data(name: str) -> None:
    """It has Spark's Arrow type, also without messages."""
    expected = to_arrow_schema(KAFKA_SCHEMA, timezone="UTC").field(name)
    whole = messages((["k"], "A", {"x": "1"}), ([], None, {}))
    for batch in (whole, whole.slice(0, 0)):
        rows = KafkaRows(StructType([KAFKA_SCHEMA[name]]))
        alone = rows.batch(_QUEUE, batch.select(sorted(rows.message_columns)))
        assert alone.schema.field(name) == expected
        alone.validate(full=True)
        assert alone.column(0).to_pylist() == KafkaRows(KAFKA_SCHEMA).batch(_QUEUE, batch).column(name).to_pylist()
    assert KafkaRows(StructType([KAFKA_SCHEMA["offset"]])).message_columns == {"queue_offset"}


_TEXT = st.text("ab", min_size=1, max_size=3)
_ROW = st.tuples(st.lists(_TEXT, max_size=3), st.none() | _TEXT, st.dictionaries(_TEXT, _TEXT, max_size=3))


@given(rows=st.lists(_ROW, max_size=8), cut=st.integers(0, 8))
def test_a_slice_gives_its_rows(rows: list[tuple[list[str], str | None, dict[str, str]]], cut: int) -> None:
    """Messages below a range's start or above its end are cut off without a copy."""
    found = KafkaRows(KAFKA_SCHEMA).batch(_QUEUE, messages(*rows).slice(cut)).to_pylist()
    assert [row["key"] for row in found] == [keys[0].encode() if keys else None for keys, _, _ in rows[cut:]]
    for row, (keys, tag, properties) in zip(found, rows[cut:], strict=True):
        expected = properties | ({"TAGS": tag} if tag else {}) | ({"KEYS": " ".join(keys)} if len(keys) > 1 else {})
        assert row["headers"] == ([_header(*entry) for entry in expected.items()] or None)
