"""The columns of messages as Spark has them: those of every message, and with bodySchema those of its body."""

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

CORRUPT_RECORD = "_corrupt_record"  # as Spark's JSON source calls the column with the text of what it could not parse
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


def parse_body_schema(text: str) -> StructType:
    """bodySchema: the columns of bodies; ValueError for a text that is none, or names a column that messages have."""
    schema = parse_ddl(text)
    own = {field.name for field in SCHEMA}
    for field in schema:
        if field.name.lower() in own:
            raise ValueError(f"{field.name} is a column of every message; read that field with from_json(body)")
        if field.name == CORRUPT_RECORD and field.dataType != StringType():
            raise ValueError(f"{CORRUPT_RECORD} is a string: the text of a body that is not parsed")
    if schema.names == [CORRUPT_RECORD]:
        raise ValueError(f"names no field of the bodies beside {CORRUPT_RECORD}")
    return schema


def all_columns(body_schema: StructType | None) -> StructType:
    """What is read unless `.schema(...)` names some of them."""
    return SCHEMA if body_schema is None else StructType([*SCHEMA, *body_schema])


def require_schema(schema: StructType, body_schema: StructType | None = None) -> None:
    """ArgumentIllegalError for a schema with a column that messages have not, or have as another type."""
    known = {field.name: field.dataType for field in all_columns(body_schema)}
    for field in schema:
        if field.name not in known:
            raise ArgumentIllegalError(f"messages have no column {field.name}; they have {', '.join(known)}")
        if field.dataType != known[field.name]:
            wanted = known[field.name].simpleString()
            raise ArgumentIllegalError(f"column {field.name} is {wanted}, not {field.dataType.simpleString()}")
