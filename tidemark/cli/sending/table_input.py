"""Input of `produce` from CSV and Parquet files, as tables of messages. Needs pyarrow."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from tidemark.cli.sending.line_input import FieldNames, TableRows, malformed
from tidemark.errors import ArgumentIllegalError

_CSV_BLOCK_BYTES = 8 << 20  # longer than any row
_PARQUET_ROWS = 65_536
_QUOTED = re.compile(rb'((?<![^,\r\n])"[^"]*(?:""[^"]*)*(?:"(?!")|\Z))')  # a quote within a value is text
_ROW_OF_ARROW = re.compile(r"Row #(\d+): (.*)", re.DOTALL)


def rows_of_csv(stream: BinaryIO, names: FieldNames, *, infer_types: bool) -> Iterator[TableRows]:
    """Yield the rows below a header. Values are text, unless *infer_types* lets pyarrow detect types in the first part.

    pyarrow gets buffers, never the stream: its reader of streams reads ahead in a thread of its own. That thread still
    waits for input after a malformed row, and aborts the process if it still runs when Python ends.
    """
    header = _csv_header(stream)
    _require_columns(header, names)
    types: Any = None if infer_types else dict.fromkeys(header, pa.string())
    number = 2  # the header is row 1
    try:
        for rows in _whole_csv_rows(stream):
            table = arrow_csv.read_csv(
                pa.py_buffer(codecs.BOM_UTF8 + rows if rows.startswith(codecs.BOM_UTF8) else rows),  # it removes one
                arrow_csv.ReadOptions(column_names=header, use_threads=False, block_size=len(rows) + 3),
                # In a single column, an empty line is an empty value, which is refused as a body.
                arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(header) > 1),
                arrow_csv.ConvertOptions(column_types=types),
            )
            yield TableRows(table, names, number)
            types = table.schema
            number += table.num_rows
    except pa.ArrowInvalid as error:
        raise _csv_fault(error, number) from error


def _whole_csv_rows(stream: BinaryIO) -> Iterator[bytes]:
    """Split the input after the last row that ends in each block. The last part may lack its newline."""
    rest = b""
    while block := stream.read(_CSV_BLOCK_BYTES):
        block = rest + block
        end = _end_of_csv_rows(block)
        rest = block[end:]
        if end:
            yield block[:end]
        elif len(rest) > _CSV_BLOCK_BYTES:
            raise pa.ArrowInvalid(f"a row is longer than {_CSV_BLOCK_BYTES} bytes: is a quote never closed?")
    if rest:
        yield rest


def _end_of_csv_rows(block: bytes) -> int:
    """Return the end of the last whole row in *block*, which begins with a row."""
    text = block.removesuffix(b"\r")  # it may be half of a newline
    end = len(text)
    pieces = _QUOTED.split(text)  # unquoted text and quoted values alternate
    for number, piece in zip(range(len(pieces) - 1, -1, -1), reversed(pieces), strict=True):
        newline = -1 if number % 2 else max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        end -= len(piece)
        if newline >= 0:
            return end + newline + 1
    return 0


def rows_of_parquet(source: Any, names: FieldNames) -> Iterator[TableRows]:
    """Yield the rows of a Parquet file in parts."""
    number = 1
    try:
        file = pq.ParquetFile(source)
        _require_columns(file.schema_arrow.names, names)
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
            yield TableRows(pa.Table.from_batches([batch]), names, number)
            number += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise malformed("row", number, f"at or after this row, the Parquet file is invalid: {error}") from error


def _csv_header(stream: BinaryIO) -> list[str]:
    lines = (line.decode("utf-8-sig") for line in iter(stream.readline, b""))
    try:
        header = next(csv.reader(lines, strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise malformed("row", 1, f"the header cannot be read: {error}") from error
    if not header:
        raise malformed("row", 1, "the header is missing")
    if len(set(header)) < len(header):
        raise malformed("row", 1, "the header has a column name twice")
    return header


def _csv_fault(error: pa.ArrowInvalid, number: int) -> ArgumentIllegalError:
    """Return the error with its row number. number: of the first row of the part, where pyarrow begins to count."""
    told = _ROW_OF_ARROW.search(str(error))
    if told is None:
        return malformed("row", number, f"at or after this row: {error}")
    return malformed("row", number + int(told[1]) - 1, told[2])


def _require_columns(columns: list[str], names: FieldNames) -> None:
    for name in names:
        if name is not None and name not in columns:
            raise ArgumentIllegalError(f"there is no column {name!r}; there are {', '.join(columns)}", column=name)
