"""What `produce` reads, as tables of messages: lines, lines of JSON, CSV, Parquet.

A malformed place is named by its number; rows before it are given first, and nothing behind it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv as arrow_csv

from tidemark.cli.arrivals import Chunk
from tidemark.errors import ArgumentIllegalError

_BODY, _KEY, _TAG = "body", "key", "tag"
_CSV_BLOCK_BYTES = 8 << 20  # longer than any row
_PARQUET_ROWS = 65_536
_ROW_OF_ARROW = re.compile(r"Row #(\d+): (.*)", re.DOTALL)


class FieldNames(NamedTuple):
    """Which fields or columns are what; body None: all of the row, as JSON."""

    body: str | None = None
    key: str | None = None
    tag: str | None = None


class Rows(NamedTuple):
    """Messages in a row. first: number of the first one in the input, in *unit*s: line or row."""

    table: pa.Table
    names: FieldNames
    first: int
    unit: str


def rows_of_lines(chunks: Iterable[Chunk]) -> Iterator[Rows]:
    """Each line a body, byte for byte."""
    for first, lines in chunks:
        good = lines.index(b"") if b"" in lines else len(lines)
        if good:
            yield _rows_of_values(first, lines[:good])
        if good < len(lines):
            raise _malformed("line", first + good, "it is empty, and a message needs a body")


def rows_of_json_lines(chunks: Iterable[Chunk], names: FieldNames) -> Iterator[Rows]:
    """Each line a JSON object: as it stands the body, or one of its fields."""
    for first, lines in chunks:
        messages: list[tuple[bytes, str | None, str | None]] = []
        fault: ArgumentIllegalError | None = None
        for number, line in enumerate(lines, first):
            try:
                messages.append(_message_of(line, names))
            except ValueError as error:
                fault = _malformed("line", number, str(error))
                break
        if messages:
            bodies, keys, tags = (
                [one[0] for one in messages],
                [one[1] for one in messages],
                [one[2] for one in messages],
            )
            yield _rows_of_values(first, bodies, keys, tags)
        if fault is not None:
            raise fault


def rows_of_csv(stream: io.BufferedReader[Any], names: FieldNames, *, infer_types: bool) -> Iterator[Rows]:
    """Rows under a header. Every value is text, unless *infer_types* lets pyarrow guess numbers, booleans and times."""
    header = _csv_header(stream)
    _require_columns(header, names)
    if not stream.peek(1):
        return
    number = 2  # the header is row 1
    try:
        reader = arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(column_names=header, use_threads=False, block_size=_CSV_BLOCK_BYTES),
            arrow_csv.ParseOptions(newlines_in_values=True),
            arrow_csv.ConvertOptions(column_types=None if infer_types else dict.fromkeys(header, pa.string())),
        )
        for batch in reader:
            yield Rows(pa.Table.from_batches([batch]), names, number, "row")
            number += batch.num_rows
    except pa.ArrowInvalid as error:
        raise _csv_fault(error, number) from error


def rows_of_parquet(source: Any, names: FieldNames) -> Iterator[Rows]:
    """Rows of a Parquet file, piece by piece."""
    number = 1
    try:
        file = pq.ParquetFile(source)
        _require_columns(file.schema_arrow.names, names)
        for batch in file.iter_batches(batch_size=_PARQUET_ROWS):
            yield Rows(pa.Table.from_batches([batch]), names, number, "row")
            number += batch.num_rows
    except (pa.ArrowException, OSError) as error:
        raise _malformed("row", number, f"in it or behind it, this is no Parquet file: {error}") from error


def _rows_of_values(
    first: int, bodies: list[bytes], keys: list[str | None] | None = None, tags: list[str | None] | None = None
) -> Rows:
    columns: dict[str, pa.Array] = {_BODY: pa.array(bodies, pa.large_binary())}
    if keys is not None and any(keys):
        columns[_KEY] = pa.array(keys, pa.large_string())
    if tags is not None and any(tags):
        columns[_TAG] = pa.array(tags, pa.large_string())
    names = FieldNames(_BODY, _KEY if _KEY in columns else None, _TAG if _TAG in columns else None)
    return Rows(pa.table(columns), names, first, "line")


def _message_of(line: bytes, names: FieldNames) -> tuple[bytes, str | None, str | None]:
    """Body, key and tag of a line of JSON; ValueError tells what is wrong with it."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error.msg}, at column {error.colno}") from None
    if not isinstance(value, dict):
        raise ValueError("it is JSON, but no object")
    body = line
    if names.body is not None:
        field = _field(value, names.body)
        body = field.encode() if isinstance(field, str) else orjson.dumps(field)
        if field is None or not body:
            raise ValueError(f"its field {names.body!r} is empty, and a message needs a body")
    return body, _text(value, names.key), _text(value, names.tag)


def _text(value: dict[str, Any], name: str | None) -> str | None:
    if name is None:
        return None
    field = _field(value, name)
    if isinstance(field, bool) or not isinstance(field, str | int | None):
        raise ValueError(f"its field {name!r} is neither text nor a whole number")
    return None if field is None else str(field)


def _field(value: dict[str, Any], name: str) -> Any:
    if name not in value:
        raise ValueError(f"it has no field {name!r} (null means none)")
    return value[name]


def _csv_header(stream: BinaryIO) -> list[str]:
    lines = (line.decode("utf-8-sig") for line in iter(stream.readline, b""))
    try:
        header = next(csv.reader(lines, strict=True), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise _malformed("row", 1, f"the header cannot be read: {error}") from error
    if not header:
        raise _malformed("row", 1, "there is no header")
    if len(set(header)) < len(header):
        raise _malformed("row", 1, "the header names a column twice")
    return header


def _csv_fault(error: pa.ArrowInvalid, number: int) -> ArgumentIllegalError:
    """pyarrow counts the rows under the header from 1. number: of the first that may be meant, where it is silent."""
    told = _ROW_OF_ARROW.search(str(error))
    if told is None:
        return _malformed("row", number, f"in it or behind it: {error}")
    return _malformed("row", int(told[1]) + 1, told[2])


def _require_columns(columns: list[str], names: FieldNames) -> None:
    for name in names:
        if name is not None and name not in columns:
            raise ArgumentIllegalError(f"there is no column {name!r}; there are {', '.join(columns)}", column=name)


def _malformed(unit: str, number: int, what: str) -> ArgumentIllegalError:
    return ArgumentIllegalError(f"{unit} {number}: {what}", **{unit: number})
