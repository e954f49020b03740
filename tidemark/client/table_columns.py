"""A pyarrow or pandas table → message columns, slice by slice: buffers are handed on, no value becomes Python's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidemark.client.row_json import json_rows
from tidemark.format.pack import ABSENT, Column, MessageColumns

if TYPE_CHECKING:
    import pandas as pd

_SLICE_BYTES = 32 << 20
_SLICE_ROWS = 65_536


class ColumnNames(NamedTuple):
    """Which columns of a table are what; body None: the row as JSON."""

    body: str | None = None
    tag: str | None = None
    key: str | None = None
    unique_key: str | None = None


def to_arrow(table: pa.Table | pd.DataFrame) -> pa.Table:
    """*table* as Arrow; of pandas the index is left out, NaN and None become null."""
    return table if isinstance(table, pa.Table) else pa.Table.from_pandas(table, preserve_index=False)


def column_slices(table: pa.Table, names: ColumnNames) -> Iterator[tuple[int, MessageColumns]]:
    """(number of the first row, columns) of slices of about 32 MiB; KeyError for a name that is no column."""
    rows = _rows_per_slice(table)
    for first_row in range(0, table.num_rows, rows):
        part = table.slice(first_row, rows)
        body = json_rows(part) if names.body is None else part[names.body]
        optional = [ABSENT if name is None else _column(part[name]) for name in names[1:]]
        yield first_row, MessageColumns(_column(body), *optional)


def _rows_per_slice(table: pa.Table) -> int:
    row_bytes = max(1, int(table.nbytes) // max(1, int(table.num_rows)))
    return max(1, min(_SLICE_ROWS, _SLICE_BYTES // row_bytes))


def _column(values: pa.Array | pa.ChunkedArray) -> Column:
    """Bytes and offsets of *values*, nulls without bytes; whatever is neither text nor bytes as Arrow writes it."""
    kind = values.type
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    array = pc.cast(values, pa.large_binary() if is_bytes else pa.large_string())
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if array.null_count:
        array = pc.fill_null(array, b"" if is_bytes else "")
    _, offsets, data = array.buffers()
    starts = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return Column(np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), starts)
