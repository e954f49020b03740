"""Conversion of messages to batches of Spark's columns and types."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tidemark.client.received_message import StoreQueue, TopicQueue
from tidemark.errors import ArgumentIllegalError
from tidemark.spark.columns import CORRUPT_RECORD, SCHEMA
from tidemark.spark.source.json_bodies import JsonBodies, texts_of_nulls

_TIMES = {"born_timestamp": "born_timestamp_ms", "store_timestamp": "store_timestamp_ms"}
_OF_QUEUES = frozenset({"store", "topic", "queue_id"})
_OF_MESSAGES = frozenset(SCHEMA.names) | _OF_QUEUES


class Rows:
    """Converter to batches of *schema*: any columns in any order.

    body_schema  schema of JSON bodies, whose fields are columns
    fail_fast    fail for a body that does not match body_schema
    """

    def __init__(self, schema: StructType, body_schema: StructType | None = None, *, fail_fast: bool = False) -> None:
        self._schema = arrow_schema(schema)
        self._fail_fast = fail_fast
        self._bodies: JsonBodies | None = None
        of_body = set(schema.names) - _OF_MESSAGES
        if body_schema is not None and of_body:
            every = CORRUPT_RECORD in of_body
            fields = [field for field in arrow_schema(body_schema) if every or field.name in of_body]
            self._bodies = JsonBodies([field for field in fields if field.name != CORRUPT_RECORD])

    @property
    def message_columns(self) -> set[str]:
        """Columns of tidemark.read.messages.message_columns.SCHEMA that the batches need."""
        needed = {_TIMES.get(name, name) for name in self._schema.names if name in _OF_MESSAGES}
        of_body = {"body"} if self._bodies is not None else set()
        return (needed | of_body | {"queue_offset"}) - _OF_QUEUES

    def batch(self, queue: TopicQueue, messages: pa.RecordBatch) -> pa.RecordBatch:
        """Convert *messages* of *queue*, without needless copies.

        messages: columns of tidemark.read.messages.message_columns.SCHEMA

        Raises ArgumentIllegalError with fail_fast for a body that does not match body_schema.
        """
        parsed = {} if self._bodies is None else self._parsed(self._bodies, queue, messages)
        columns = [
            parsed[field.name] if field.name in parsed else _column(field, queue, messages) for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _parsed(self, parser: JsonBodies, queue: TopicQueue, messages: pa.RecordBatch) -> dict[str, pa.Array]:
        bodies = messages.column("body")
        rows = parser.parse(bodies)
        if self._fail_fast and rows.null_count:
            offset = messages.column("queue_offset").filter(rows.is_null())[0]
            raise ArgumentIllegalError(
                f"the body at offset {offset} of queue {queue.queue_id} of {queue.topic} is not a JSON object as "
                "bodySchema requires; mode=PERMISSIVE gives nulls for it",
                argument="bodySchema",
            )
        columns = dict(zip(rows.type.names, rows.flatten(), strict=True))
        if CORRUPT_RECORD in self._schema.names:
            columns[CORRUPT_RECORD] = texts_of_nulls(bodies, rows)
        return columns


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema with times in UTC; older versions of Spark support only UTC."""
    given: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **given)


def _column(field: pa.Field, queue: TopicQueue, messages: pa.RecordBatch) -> pa.Array:
    if field.name == "store":
        store = queue.store if isinstance(queue, StoreQueue) else ""
        return pa.repeat(pa.scalar(store), messages.num_rows)
    if field.name == "topic":
        return pa.repeat(pa.scalar(queue.topic), messages.num_rows)
    if field.name == "queue_id":
        return pa.repeat(pa.scalar(queue.queue_id, pa.int32()), messages.num_rows)
    if field.name in _TIMES:
        return as_times(messages.column(_TIMES[field.name]), field.type)
    column = messages.column(field.name)
    return column if column.type == field.type else column.cast(field.type)


def as_times(epoch_ms: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return milliseconds since the epoch as timestamps of *kind*, in microseconds."""
    return pc.multiply(epoch_ms, 1000).view(kind)


def carrying(messages: pa.RecordBatch, key: str) -> pa.RecordBatch:
    """Return those of *messages* that have *key*."""
    keys = messages.column("keys")
    rows = pc.list_parent_indices(keys).filter(pc.equal(pc.list_flatten(keys), key))
    return messages.take(pc.unique(rows))
