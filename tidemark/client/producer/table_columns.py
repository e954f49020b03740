"""Converts a table of pyarrow, pandas, polars or similar libraries into message columns, slice by slice.

Buffers are passed on; no value becomes a Python object.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.client.producer.row_json import json_rows
from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError
from tidemark.format.pack import ABSENT, Column, MessageColumns

if TYPE_CHECKING:
    import pandas as pd


class ArrowStream(Protocol):
    """An object with the Arrow C stream interface, such as a polars frame."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return a PyCapsule of an ArrowArrayStream."""
        ...


TableLike: TypeAlias = "pa.Table | pd.DataFrame | ArrowStream"

_SLICE_BYTES = 32 << 20
_SLICE_ROWS = 65_536
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)


class ColumnNames(NamedTuple):
    """Names of a table's columns by role; body None: the row as JSON. properties: an encoded properties string."""

    body: str | None = None
    tag: str | None = None
    key: str | None = None
    unique_key: str | None = None
    properties: str | None = None


def to_arrow(table: TableLike) -> pa.Table:
    """Return *table* as Arrow, without a pandas index; NaN and None become null. TypeError for an unsupported type."""
    if isinstance(table, pa.Table):
        return table
    pandas = sys.modules.get("pandas")  # a program with a frame has imported it
    if pandas is not None and isinstance(table, pandas.DataFrame):
        return pa.Table.from_pandas(table, preserve_index=False)
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(f"a {type(table).__name__} is not a table of pyarrow, pandas, polars or a similar library")
    return pa.table(table)


def column_slices(table: pa.Table, names: ColumnNames) -> Iterator[tuple[int, MessageColumns]]:
    """Yield slices of about 32 MiB with the number of their first row. Raises KeyError for an unknown column."""
    rows = _rows_per_slice(table)
    for first_row in range(0, table.num_rows, rows):
        part = table.slice(first_row, rows)
        body = json_rows(part, first_row=first_row) if names.body is None else _values(part, names.body, first_row)
        tag, key, unique_key = (
            ABSENT if name is None else _column(_utf8(_values(part, name, first_row), name, first_row))
            for name in (names.tag, names.key, names.unique_key)
        )
        others = ABSENT if names.properties is None else _column(part[names.properties])
        yield first_row, MessageColumns(_column(body), tag, key, unique_key, others)


def _rows_per_slice(table: pa.Table) -> int:
    try:
        size = int(table.nbytes)
    except pa.ArrowException:  # of a column of views, before pyarrow 24
        size = int(table.get_total_buffer_size())
    row_bytes = max(1, size // max(1, int(table.num_rows)))
    return max(1, min(_SLICE_ROWS, _SLICE_BYTES // row_bytes))


def _values(part: pa.Table, name: str, first_row: int) -> pa.ChunkedArray:
    """Return column *name* as text or bytes; numbers and times in Arrow's text form.

    Raises ArgumentIllegalError (facts: column, row) for a nested type, such as a list.
    """
    values = part[name]
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if _is_bytes(values.type):
        return values
    try:
        return pc.cast(values, pa.large_string())
    except pa.ArrowException as error:
        raise ArgumentIllegalError(
            f"column {name!r} of type {values.type} has no text form: name a column of text, bytes, numbers or times, "
            "or omit body= to send the row as JSON",
            column=name,
            row=first_row,
        ) from error


def _utf8(values: pa.ChunkedArray, name: str, first_row: int) -> pa.ChunkedArray:
    """Return *values* of a tag or key as text. Raises PropertiesIllegalError (facts: column, row) for other bytes."""
    try:
        return pc.cast(values, pa.large_string())
    except pa.ArrowInvalid:
        at = next(at for at, value in enumerate(values.to_pylist()) if value is not None and not _is_utf8(value))
        raise PropertiesIllegalError(
            f"row {first_row + at}, column {name!r}: {values[at].as_py()[:32]!r} is not UTF-8 text, as keys and tags "
            "must be",
            column=name,
            row=first_row + at,
        ) from None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_bytes(kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in _BYTES)


def _column(values: pa.Array | pa.ChunkedArray) -> Column:
    """Return bytes and offsets of *values*, which are text or bytes; a null has no bytes."""
    is_bytes = _is_bytes(values.type)
    array = pc.cast(values, pa.large_binary() if is_bytes else pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.null_count:
        array = pc.fill_null(array, b"" if is_bytes else "")
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return Column(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), starts)
