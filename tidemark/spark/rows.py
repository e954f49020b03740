"""Messages as Spark has them: its columns and types, out of the library's."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidemark.client.received import TopicQueue
from tidemark.errors import ArgumentIllegalError

SCHEMA = StructType(
    [
        StructField("topic", StringType()),
        StructField("queue_id", IntegerType()),
        StructField("queue_offset", LongType()),
        StructField("physical_offset", LongType()),
        StructField("keys", ArrayType(StringType())),
        StructField("tag", StringType()),
        StructField("body", BinaryType()),
        StructField("properties", MapType(StringType(), StringType())),
        StructField("born_timestamp", TimestampType()),
        StructField("store_timestamp", TimestampType()),
        StructField("message_id", StringType()),
        StructField("offset_msg_id", StringType()),
    ]
)
_TIMES = {"born_timestamp": "born_timestamp_ms", "store_timestamp": "store_timestamp_ms"}


class Rows:
    """Makes batches of a *schema*: all of SCHEMA's columns, or some of them, in any order."""

    def __init__(self, schema: StructType) -> None:
        given: dict[str, Any] = (
            {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
        )
        self._schema = to_arrow_schema(schema, **given)  # older ones know UTC alone

    def batch(self, queue: TopicQueue, messages: pa.RecordBatch) -> pa.RecordBatch:
        """*messages* (tidemark.read.message_columns.SCHEMA) of *queue*; nothing is copied that need not be."""
        columns = [_column(field, queue, messages) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def require_schema(schema: StructType) -> None:
    """ArgumentIllegalError for a schema with a column that messages have not, or have as another type."""
    known = {field.name: field.dataType for field in SCHEMA}
    for field in schema:
        if field.name not in known:
            raise ArgumentIllegalError(f"messages have no column {field.name}; they have {', '.join(known)}")
        if field.dataType != known[field.name]:
            wanted = known[field.name].simpleString()
            raise ArgumentIllegalError(f"column {field.name} is {wanted}, not {field.dataType.simpleString()}")


def _column(field: pa.Field, queue: TopicQueue, messages: pa.RecordBatch) -> pa.Array:
    if field.name == "topic":
        return pa.repeat(pa.scalar(queue.topic), messages.num_rows)
    if field.name == "queue_id":
        return pa.repeat(pa.scalar(queue.queue_id, pa.int32()), messages.num_rows)
    if field.name in _TIMES:
        times = pc.multiply(messages.column(_TIMES[field.name]), 1000)
        return times.cast(pa.timestamp("us")).cast(field.type)
    return messages.column(field.name).cast(field.type)


def carrying(messages: pa.RecordBatch, key: str) -> pa.RecordBatch:
    """Those of *messages* that carry *key*."""
    keys = messages.column("keys")
    rows = pc.list_parent_indices(keys).filter(pc.equal(pc.list_flatten(keys), key))
    return messages.take(pc.unique(rows))
