"""Rows of a table as JSON objects, column by column in Arrow's compiled code: no Python object per row or value.

Numbers keep their exact value (517.0 is written 517, as JSON has one kind of number); NaN and infinities become null.
Texts are escaped as JSON asks. Types without a JSON form of their own go through orjson and str, value by value: dates
and times as ISO 8601, decimals and the rest as text, lists and structs as arrays and objects.
"""

from __future__ import annotations

import orjson
import pyarrow as pa
import pyarrow.compute as pc

_TEXT = pa.large_string()
_CONTROL = r"[\x00-\x1f]"


def json_rows(table: pa.Table) -> pa.LargeStringArray:
    """One JSON object a row, columns in the table's order."""
    if table.num_columns == 0:
        return pa.array(["{}"] * table.num_rows, _TEXT)
    parts = []
    for number, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        parts += [_text(f"{',' if number else '{'}{orjson.dumps(name).decode()}:"), _json_values(_one_chunk(column))]
    return pc.binary_join_element_wise(*parts, _text("}"), _text(""))


def _json_values(column: pa.Array) -> pa.LargeStringArray:
    """Each value of *column* as JSON; nulls as null."""
    kind = column.type
    if pa.types.is_floating(kind):
        values = pc.cast(pc.if_else(pc.is_finite(column), column, None), _TEXT)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values = pc.cast(column, _TEXT)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        values = _quoted(pc.cast(column, _TEXT))
    else:
        return pa.array([orjson.dumps(value, default=str).decode() for value in column.to_pylist()], _TEXT)
    return pc.fill_null(values, "null")


def _quoted(column: pa.LargeStringArray) -> pa.LargeStringArray:
    if pc.any(pc.match_substring_regex(column, _CONTROL)).as_py():
        return pa.array([None if text is None else orjson.dumps(text).decode() for text in column.to_pylist()], _TEXT)
    escaped = pc.replace_substring(pc.replace_substring(column, "\\", "\\\\"), '"', '\\"')
    return pc.binary_join_element_wise(_text('"'), escaped, _text('"'), _text(""))


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, _TEXT)
