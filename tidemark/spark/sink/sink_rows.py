"""Conversion of DataFrame rows to columns of messages, in slices with the same boundaries in every replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from tidemark.client.producer.table_columns import ColumnNames
from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError, TopicIllegalError
from tidemark.format.properties import KEYS, TAGS, UNIQ_KEY, require_writable
from tidemark.spark.columns import KAFKA_SCHEMA

PARTITION = "partition"  # queue ids of rows with Kafka's columns
SLICE_ROWS = 16_384
SLICE_BYTES = 16 << 20  # total size of the bodies
_NO_KEY = "^$|[\x00-\x20\x7f]"
_ROW = "row"  # row number in the task, added by the sink
_NO_VALUE = "^$|[\x01\x02]"
_OWN_COLUMN = frozenset({TAGS, KEYS, UNIQ_KEY})
_TEXT, _TEXTS = StringType(), ArrayType(StringType())
_COLUMNS: dict[str, tuple[DataType, ...]] = {
    "body": (BinaryType(), StringType()),
    "topic": (_TEXT,),
    "tag": (_TEXT,),
    "key": (_TEXT,),
    "keys": (_TEXTS,),
    "properties": (MapType(StringType(), StringType()),),
}
_KAFKA_COLUMNS: dict[str, tuple[DataType, ...]] = {field.name: (field.dataType,) for field in KAFKA_SCHEMA} | {
    "key": (BinaryType(), StringType()),
    "value": (BinaryType(), StringType()),
}
NAMES = ColumnNames("body", "tag", "key", "unique_key", "properties")


def require_sink_schema(schema: StructType, topic: str | None, *, kafka_columns: bool = False) -> None:
    """Raise ArgumentIllegalError for an unknown or missing column, or one of a wrong type."""
    columns, body = (_KAFKA_COLUMNS, "value") if kafka_columns else (_COLUMNS, "body")
    types = {field.name: field.dataType for field in schema}
    for name, kind in types.items():
        if name not in columns:
            raise ArgumentIllegalError(
                f"there is no column {name}; columns: {', '.join(columns)}. To send rows as JSON: "
                f"select(to_json(struct('*')).alias('{body}'))"
            )
        if not any(_is_kind(kind, wanted) for wanted in columns[name]):
            wanted_names = " or ".join(wanted.simpleString() for wanted in columns[name])
            raise ArgumentIllegalError(f"column {name} must have type {wanted_names}, not {kind.simpleString()}")
    if body not in types:
        raise ArgumentIllegalError(f"the column {body} is missing")
    if topic is None and "topic" not in types:
        raise ArgumentIllegalError("set the option topic or add a column topic", argument="topic")
    if {"key", "keys"} <= types.keys():
        raise ArgumentIllegalError("use only one of the columns key and keys")


def _is_kind(kind: DataType, wanted: DataType) -> bool:
    return kind.simpleString() == wanted.simpleString()


def slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows in order, divided by number and size only.

    The boundaries do not depend on the input batches.
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for whole in batches:
        batch = whole
        while batch.num_rows:
            sizes = np.cumsum(pc.fill_null(pc.binary_length(batch.column("body")), 0).to_numpy().astype(np.int64))
            fitting = min(int(np.searchsorted(sizes, SLICE_BYTES - size)) + 1, SLICE_ROWS - rows, batch.num_rows)
            held.append(batch.slice(0, fitting))
            rows, size = rows + fitting, size + int(sizes[fitting - 1])
            batch = batch.slice(fitting)
            if rows == SLICE_ROWS or size >= SLICE_BYTES:
                yield pa.Table.from_batches(held)
                held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def by_topic(table: pa.Table, topic: str | None) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows by topic, in order of first occurrence. The option takes precedence over the column."""
    if topic is not None or not table.num_rows:
        yield topic or "", table
        return
    topics = table.column("topic")
    for name in pc.unique(topics).to_pylist():
        if name is None:
            raise TopicIllegalError("a row has a null topic")
        yield name, table.filter(pc.equal(topics, name))


def by_partition(table: pa.Table) -> Iterator[tuple[int | None, pa.Table]]:
    """Yield the rows by the queue id that they name, None for any, in order of first occurrence."""
    if PARTITION not in table.column_names:
        yield None, table
        return
    partitions = table.column(PARTITION)
    for queue_id in pc.unique(partitions).to_pylist():
        yield queue_id, table.filter(pc.is_null(partitions) if queue_id is None else pc.equal(partitions, queue_id))


def message_table(table: pa.Table, unique_keys: pa.Array) -> tuple[pa.Table, bool]:
    """Return columns NAMES, ready to be packed, and whether rows may have several keys.

    Raises PropertiesIllegalError for names and values that cannot be written.
    """
    rows = table.num_rows
    columns = {
        "body": table.column("body"),
        "tag": _column(table, "tag"),
        "key": _keys(table),
        "unique_key": unique_keys,
        "properties": _properties(table.column("properties").combine_chunks())
        if "properties" in table.column_names
        else pa.nulls(rows, pa.string()),
    }
    return pa.table(columns), "keys" in table.column_names


def _column(table: pa.Table, name: str) -> pa.ChunkedArray | pa.Array:
    return table.column(name) if name in table.column_names else pa.nulls(table.num_rows, pa.string())


def _keys(table: pa.Table) -> pa.ChunkedArray | pa.Array:
    if "keys" not in table.column_names:
        return _column(table, "key")
    keys = table.column("keys").combine_chunks()
    given = pc.list_flatten(keys)
    refused = pc.fill_null(pc.match_substring_regex(given, _NO_KEY), True)
    at = pc.index(refused, True).as_py()
    if at >= 0:
        row = pc.list_parent_indices(keys)[at].as_py()
        if _ROW in table.column_names:
            row = table.column(_ROW)[row].as_py()
        raise PropertiesIllegalError(
            f"row {row} of this task has the key {given[at].as_py()!r}: a key must not be null or empty or contain "
            "spaces or control characters; filter out such keys",
            row=row,
        )
    return pc.binary_join(keys.cast(pa.list_(pa.string())), " ")


def _properties(maps: pa.Array) -> pa.Array:
    """Encode each row as name U+0001 value U+0002 …; entries with a null value are omitted."""
    names, values = maps.keys, maps.items
    for name in pc.unique(names).to_pylist():
        require_writable({name: "any"})
        if name in _OWN_COLUMN:
            raise PropertiesIllegalError(f"property {name} must be set by its own column", name=name)
    if pc.any(pc.match_substring_regex(values, _NO_VALUE)).as_py():
        raise PropertiesIllegalError("a property's value is empty or contains U+0001 or U+0002")
    entries = pc.binary_join_element_wise(pc.binary_join_element_wise(names, values, "\x01"), "", "\x02")
    return pc.binary_join(pa.ListArray.from_arrays(maps.offsets, pc.fill_null(entries, "")), "")
