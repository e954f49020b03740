"""Rows as JSON objects: values are sent exactly, or refused with row and column."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.producer.row_json import json_rows
from tidemark.errors import ArgumentIllegalError

_ROW = st.tuples(
    st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | st.booleans(),
)


@given(st.lists(_ROW, max_size=20))
def test_json_of_plain_values_reads_back_as_the_row(rows: list[tuple[object, ...]]) -> None:
    """Integers, floats and texts keep their exact values."""
    types = [pa.int64(), pa.float64(), pa.string(), pa.bool_()]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    table = pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names=['a"\\', "b", "c", "d"]
    )
    expected = orjson.loads(orjson.dumps(table.to_pylist()))
    assert [orjson.loads(text) for text in json_rows(table).to_pylist()] == expected


_NULLABLE = st.none() | st.lists(st.none() | st.integers(-1000, 1000), max_size=3)


@given(st.lists(st.none() | st.lists(_NULLABLE, max_size=3), max_size=8), st.integers(0, 3))
def test_json_of_nested_lists_reads_back_with_every_null(rows: list[Any], skipped: int) -> None:
    """This holds for slices too, whose child values begin at another offset."""
    table = pa.table({"v": pa.array(rows, pa.list_(pa.list_(pa.int64())))}).slice(skipped)
    assert [json.loads(text)["v"] for text in json_rows(table).to_pylist()] == rows[skipped:]


MOMENT = 1_357_034_400_123_456_789  # 2013-01-01T10:00:00.123456789 UTC, in nanoseconds


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (True, pa.bool_(), "true"),
        ((1 << 64) - 1, pa.uint64(), "18446744073709551615"),
        (-(1 << 63), pa.int64(), "-9223372036854775808"),
        (1.5, pa.float16(), "1.5"),
        (0.1, pa.float32(), "0.1"),
        (0.1, pa.float64(), "0.1"),
        (Decimal("12345678901234567890.123456789"), pa.decimal128(38, 9), "12345678901234567890.123456789"),
        (Decimal("0.10"), pa.decimal128(5, 2), "0.10"),
        (Decimal("1" * 60), pa.decimal256(70, 0), "1" * 60),
        (b"\x00\xff", pa.binary(), '"AP8="'),
        (b"\x00\xff", pa.binary(2), '"AP8="'),
        (MOMENT, pa.timestamp("ns"), '"2013-01-01T10:00:00.123456789"'),
        (MOMENT, pa.timestamp("ns", "UTC"), '"2013-01-01T10:00:00.123456789+00:00"'),
        (MOMENT, pa.timestamp("ns", "Asia/Kolkata"), '"2013-01-01T15:30:00.123456789+05:30"'),
        (MOMENT // 10**9, pa.timestamp("s", "America/New_York"), '"2013-01-01T05:00:00-05:00"'),
        (MOMENT // 10**9 * 1000, pa.timestamp("ms"), '"2013-01-01T10:00:00"'),
        (datetime.date(2013, 1, 31), pa.date32(), '"2013-01-31"'),
        (datetime.date(2013, 1, 31), pa.date64(), '"2013-01-31"'),
        (datetime.time(10, 0, 0, 5), pa.time64("us"), '"10:00:00.000005"'),
        (1500, pa.duration("ms"), '"PT1.500S"'),
        (-1500, pa.duration("ms"), '"-PT1.500S"'),
        (-(1 << 63), pa.duration("ns"), '"-PT9223372036.854775808S"'),
        (90, pa.duration("s"), '"PT90S"'),
        ([1, None, 3], pa.list_(pa.int64()), "[1,null,3]"),
        ([1, None], pa.list_(pa.int64(), 2), "[1,null]"),
        ([], pa.large_list(pa.string()), "[]"),
        ({"a": 1, "b": None}, pa.struct([("a", pa.int8()), ("b", pa.string())]), '{"a":1,"b":null}'),
        ([{"d": Decimal("1.10")}], pa.list_(pa.struct([("d", pa.decimal128(9, 2))])), '[{"d":1.10}]'),
        ([("k", 1), ('"', None)], pa.map_(pa.string(), pa.int64()), '{"k":1,"\\"":null}'),
        ('a"\\\n', pa.string(), '"a\\"\\\\\\n"'),
        ("x", pa.string_view(), '"x"'),
        (None, pa.null(), "null"),
    ],
)
def test_each_type_has_an_exact_form(value: object, kind: pa.DataType, text: str) -> None:
    """A null before and after the value is null for every type."""
    table = pa.table({"v": pa.array([None, value, None], kind)})
    assert json_rows(table).to_pylist() == ['{"v":null}', f'{{"v":{text}}}', '{"v":null}']


def test_encoded_columns_are_written_as_their_decoded_values() -> None:
    texts = pa.array(["a", None, "a", "b"])
    table = pa.table({"d": texts.dictionary_encode(), "r": pa.compute.run_end_encode(texts)})
    assert json_rows(table).to_pylist() == [
        '{"d":"a","r":"a"}',
        '{"d":null,"r":null}',
        '{"d":"a","r":"a"}',
        '{"d":"b","r":"b"}',
    ]


@pytest.mark.parametrize(
    ("values", "kind", "row", "named"),
    [
        ([1.0, float("nan")], pa.float64(), 1, "'v': nan"),
        ([float("-inf")], pa.float32(), 0, "'v': -inf"),
        ([float("inf")], pa.float16(), 0, "'v': inf"),
        ([[1.0], None, [2.0, float("nan")]], pa.list_(pa.float64()), 2, r"'v\[\]': nan"),
        ([{"x": 1.0}, {"x": float("inf")}], pa.struct([("x", pa.float64())]), 1, r"'v\.x': inf"),
        ([[{"x": [1.0]}], [{"x": [float("nan")]}]], pa.list_(pa.struct([("x", pa.list_(pa.float64()))])), 1, "nan"),
        ([0, 400_000_000_000], pa.timestamp("s"), 1, "years 0001 to 9999"),
        ([0, -200_000_000_000], pa.timestamp("s", "UTC"), 1, "years 0001 to 9999"),
        ([0, 4_000_000], pa.date32(), 1, "years 0001 to 9999"),
    ],
)
def test_a_value_without_a_json_form_is_refused_with_row_and_column(
    values: list[Any], kind: pa.DataType, row: int, named: str
) -> None:
    """The row is numbered in the whole table."""
    table = pa.table({"ok": [1] * len(values), "v": pa.array(values, kind)})
    with pytest.raises(ArgumentIllegalError, match=f"row {1000 + row}, column .*{named}") as raised:
        json_rows(table, first_row=1000)
    assert raised.value.facts == {"row": 1000 + row, "column": "v"}


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (pa.table([[1], [2]], names=["a", "a"]), "two columns of the table have the name 'a'"),
        (pa.table({"v": pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))}), "int64 keys"),
        (pa.table({"v": pa.array([None], pa.month_day_nano_interval())}), "month_day_nano_interval"),
    ],
)
def test_a_table_without_a_json_form_is_refused(table: pa.Table, named: str) -> None:
    with pytest.raises(ArgumentIllegalError, match=named):
        json_rows(table)


def test_tables_without_rows_or_columns_have_a_form_too() -> None:
    nested = pa.array([], pa.list_(pa.struct([("x", pa.float64())])))
    assert json_rows(pa.table({"v": nested})).to_pylist() == []
    assert json_rows(pa.table({"a": [1, 2]}).select([])).to_pylist() == ["{}", "{}"]


def test_chunks_and_slices_are_one_table() -> None:
    """The position of a value in Arrow's buffers does not matter."""
    table = pa.concat_tables([pa.table({"a": [1, 2, 3]}), pa.table({"a": [4, 5]})]).slice(1, 3)
    assert json_rows(table).to_pylist() == ['{"a":2}', '{"a":3}', '{"a":4}']
