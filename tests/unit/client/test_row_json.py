"""Rows as JSON objects."""

from __future__ import annotations

import datetime

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.row_json import json_rows

_ROW = st.tuples(
    st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    st.none() | st.floats(),
    st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | st.booleans(),
)


@given(st.lists(_ROW, max_size=20))
def test_json_of_plain_values_reads_back_as_the_row(rows: list[tuple[object, ...]]) -> None:
    """Integers, floats and texts keep their exact values; what JSON cannot say is null."""
    types = [pa.int64(), pa.float64(), pa.string(), pa.bool_()]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    table = pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names=['a"\\', "b", "c", "d"]
    )
    expected = orjson.loads(orjson.dumps(table.to_pylist()))
    assert [orjson.loads(text) for text in json_rows(table).to_pylist()] == expected


def test_other_types_have_a_form_too() -> None:
    """Times as ISO 8601, lists as arrays, structs as objects."""
    moment = datetime.datetime(2013, 1, 1, 10, tzinfo=datetime.UTC)
    table = pa.table({"at": [moment], "list": [[1, 2]], "object": [{"x": 1}]})
    (text,) = json_rows(table).to_pylist()
    assert orjson.loads(text) == {"at": "2013-01-01T10:00:00+00:00", "list": [1, 2], "object": {"x": 1}}


def test_chunks_and_slices_are_one_table() -> None:
    """The place of a value in Arrow's buffers does not matter."""
    table = pa.concat_tables([pa.table({"a": [1, 2, 3]}), pa.table({"a": [4, 5]})]).slice(1, 3)
    assert json_rows(table).to_pylist() == ['{"a":2}', '{"a":3}', '{"a":4}']
