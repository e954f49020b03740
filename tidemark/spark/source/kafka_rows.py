"""Conversion of messages to the columns of Spark's Kafka source, for queries that were written for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.client.received_message import TopicQueue
from tidemark.format.properties import KEYS, TAGS
from tidemark.spark.source.rows import arrow_schema, as_times

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

KAFKA_NAMES = {"topic": "topic", "partition": "queue_id", "offset": "queue_offset", "timestamp": "store_timestamp"}
_LOG_APPEND_TIME = 1  # id of Kafka's TimestampType.LOG_APPEND_TIME: `timestamp` is the time of storing
_NEEDED = {
    "key": {"keys"},
    "value": {"body"},
    "timestamp": {"store_timestamp_ms"},
    "headers": {"properties", "tag", "keys"},
}


class KafkaRows:
    """Converter to batches of *schema*: any of Kafka's columns in any order."""

    def __init__(self, schema: StructType) -> None:
        self._schema = arrow_schema(schema)

    @property
    def message_columns(self) -> set[str]:
        """Columns of tidemark.read.messages.message_columns.SCHEMA that the batches need."""
        return {"queue_offset"}.union(*(_NEEDED.get(name, set()) for name in self._schema.names))

    def batch(self, queue: TopicQueue, messages: pa.RecordBatch) -> pa.RecordBatch:
        """Convert *messages* of *queue*. messages: at least `message_columns`."""
        columns = [_column(field, queue, messages) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _column(field: pa.Field, queue: TopicQueue, messages: pa.RecordBatch) -> pa.Array:
    match field.name:
        case "key":
            return _first(messages.column("keys")).cast(field.type)
        case "value":
            return messages.column("body").cast(field.type)
        case "offset":
            return messages.column("queue_offset")
        case "timestamp":
            return as_times(messages.column("store_timestamp_ms"), field.type)
        case "headers":
            return _headers(messages, field.type)
    value = {"topic": queue.topic, "partition": queue.queue_id, "timestampType": _LOG_APPEND_TIME}[field.name]
    return pa.repeat(pa.scalar(value, field.type), messages.num_rows)


def _first(lists: pa.ListArray) -> pa.Array:
    """Return the first element of each list; null for an empty list."""
    return lists.values.take(pa.array(lists.offsets.to_numpy()[:-1], mask=_lengths(lists) == 0))


def _lengths(lists: pa.ListArray | pa.MapArray) -> np.ndarray:
    return np.diff(lists.offsets.to_numpy())


def _headers(messages: pa.RecordBatch, kind: pa.ListType) -> pa.Array:
    """Return properties as headers, then the tag as TAGS and several keys as KEYS; null for a message without any."""
    properties, keys = messages.column("properties"), messages.column("keys")
    first, end = properties.offsets[0].as_py(), properties.offsets[-1].as_py()
    tagged = np.flatnonzero(messages.column("tag").is_valid().to_numpy(zero_copy_only=False))
    keyed = np.flatnonzero(_lengths(keys) > 1)
    rows = np.concatenate([np.repeat(np.arange(len(properties)), _lengths(properties)), tagged, keyed])
    names = [properties.keys.slice(first, end - first), pa.repeat(TAGS, len(tagged)), pa.repeat(KEYS, len(keyed))]
    values = [
        properties.items.slice(first, end - first),
        messages.column("tag").take(pa.array(tagged)),
        pc.binary_join(keys.take(pa.array(keyed)), " "),
    ]
    order = pa.array(np.argsort(rows, kind="stable"))
    entries = pa.StructArray.from_arrays(
        [pa.concat_arrays(names).take(order), pa.concat_arrays(values).take(order).cast(pa.binary())],
        fields=list(kind.value_type),
    )
    counts = np.bincount(rows, minlength=len(properties))
    ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), entries, type=kind, mask=pa.array(counts == 0))
