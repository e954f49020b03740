"""DDL strings: parsed as Spark parses them, and refused for types that JSON cannot represent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidemark.spark.ddl import parse_ddl

_PLAIN: list[DataType] = [
    BooleanType(), ByteType(), ShortType(), IntegerType(), LongType(), FloatType(), DoubleType(), StringType(),
    DateType(), TimestampType(), DecimalType(10, 0), DecimalType(38, 38), DecimalType(5, 2),
]  # fmt: skip
_NAMES = st.sampled_from(["a", "b2", "_c", "a b", "tick`ed", "struct", "not", "comment", "1x", "a<b>:,"])


def _structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    return st.lists(st.tuples(_NAMES, inner), min_size=1, max_size=3, unique_by=lambda field: field[0]).map(
        lambda fields: StructType([StructField(name, kind) for name, kind in fields])
    )


TYPES: st.SearchStrategy[DataType] = st.recursive(
    st.sampled_from(_PLAIN), lambda inner: inner.map(ArrayType) | _structs(inner), max_leaves=6
)


def ddl_of(kind: DataType) -> str:
    """Return the type as a user may write it."""
    if isinstance(kind, ArrayType):
        return f"ARRAY < {ddl_of(kind.elementType)}>"
    if isinstance(kind, StructType):
        return f"struct<{', '.join(fields_of(kind, ':'))}>"
    return kind.simpleString()


def fields_of(schema: StructType, colon: str) -> list[str]:
    """Return name and type of each field."""
    return [f"`{field.name.replace('`', '``')}`{colon} {ddl_of(field.dataType)}" for field in schema]


@given(schema=_structs(TYPES))
def test_a_printed_schema_is_parsed_unchanged(schema: StructType) -> None:
    """All supported types are covered, in any nesting, with any name."""
    assert parse_ddl(", ".join(fields_of(schema, ""))) == schema


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("carrier string, delay int", "struct<carrier:string,delay:int>"),
        ("  a: BIGINT ,b  Double\n", "struct<a:bigint,b:double>"),
        ("a long NOT NULL COMMENT 'it''s', b tinyint", None),
        ("a long NOT NULL COMMENT 'it is', b tinyint", "struct<a:bigint,b:tinyint>"),
        ('a byte COMMENT "x, y", b decimal(7, 2), c numeric', "struct<a:tinyint,b:decimal(7,2),c:decimal(10,0)>"),
        ("a struct<b int, c: array<struct<d:date>>>", "struct<a:struct<b:int,c:array<struct<d:date>>>>"),
        ("größe real", "struct<größe:float>"),
    ],
)
def test_schema_forms_of_spark_are_parsed(text: str, expected: str | None) -> None:
    """These are colons, comments, NOT NULL, and any case; all fields may be null."""
    if expected is None:
        with pytest.raises(ValueError, match="expected a comma or the end"):
            parse_ddl(text)
        return
    schema = parse_ddl(text)
    assert schema.simpleString() == expected
    assert all(field.nullable for field in schema)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected a name at character 0"),
        ("a", "expected a type at character 1"),
        ("a int,", "expected a name"),
        ("a int b int", "expected a comma or the end at character 5"),
        ("a array<int", "expected >"),
        ("a array int", "expected <"),
        ("a struct<>", "expected a name"),
        ("a decimal(39)", r"decimal\(39,0\) is invalid"),
        ("a decimal(4,5)", r"decimal\(4,5\) is invalid"),
        ("a decimal(x)", "x is not a number"),
        ("a int not", "expected NULL"),
        ("a int comment b", "expected a text in quotes"),
        ("a int, A string", r"a name occurs twice \(case is ignored\): a, A"),
        ("a struct<b int, b int>", "a name occurs twice"),
        ("a map<string,int>", "the type map is not supported"),
        ("a binary", "the type binary is not supported"),
        ("a timestamp_ntz", "the type timestamp_ntz is not supported"),
        ("a array<variant>", "the type variant is not supported"),
    ],
)
def test_an_invalid_schema_is_refused_with_its_fault(text: str, told: str) -> None:
    """The error names the type, or the missing token and its place."""
    with pytest.raises(ValueError, match=told):
        parse_ddl(text)
