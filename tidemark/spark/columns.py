"""Spark columns of messages: those of every message, those of JSON bodies (bodySchema), or those of Kafka's source."""

from __future__ import annotations

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

from tidemark.errors import ArgumentIllegalError
from tidemark.spark.ddl import parse_ddl

CORRUPT_RECORD = "_corrupt_record"  # same name as in Spark's JSON source: text of a body that was not parsed
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

_STORE = StructField("store", StringType())  # URL of the query service
_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
KAFKA_SCHEMA = StructType(  # kafkaSchema of Spark's KafkaRecordToRowConverter
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
        StructField("headers", _HEADERS),  # only with includeHeaders
    ]
)


def parse_body_schema(text: str) -> StructType:
    """Parse bodySchema. Raises ValueError if it is not a schema or reuses the name of a message column."""
    schema = parse_ddl(text)
    own = {field.name for field in (_STORE, *SCHEMA)}
    for field in schema:
        if field.name.lower() in own:
            raise ValueError(f"{field.name} is a column of every message; read that field with from_json(body)")
        if field.name == CORRUPT_RECORD and field.dataType != StringType():
            raise ValueError(f"{CORRUPT_RECORD} must be a string: it holds the text of a body that cannot be parsed")
    if schema.names == [CORRUPT_RECORD]:
        raise ValueError(f"must name at least one field besides {CORRUPT_RECORD}")
    return schema


def all_columns(body_schema: StructType | None, *, with_store: bool = False) -> StructType:
    """Return the columns that are read without `.schema(...)`. with_store: the query reads several stores."""
    return StructType([*([_STORE] if with_store else []), *SCHEMA, *(body_schema or [])])


def kafka_columns(*, include_headers: bool) -> StructType:
    """Return the columns of Spark's Kafka source."""
    return KAFKA_SCHEMA if include_headers else StructType(KAFKA_SCHEMA.fields[:-1])


def require_schema(schema: StructType, columns: StructType = SCHEMA) -> None:
    """Raise ArgumentIllegalError if *schema* has a column that is not in *columns*, or one of another type."""
    known = {field.name: field.dataType for field in columns}
    for field in schema:
        if field.name not in known:
            raise ArgumentIllegalError(f"there is no column {field.name}; columns: {', '.join(known)}")
        if field.dataType != known[field.name]:
            wanted = known[field.name].simpleString()
            raise ArgumentIllegalError(f"column {field.name} has type {wanted}, not {field.dataType.simpleString()}")
