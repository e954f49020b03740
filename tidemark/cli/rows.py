"""What `produce` reads of lines and of lines of JSON, without pyarrow; of tables: `table_rows`.

A malformed place is named by its number; rows before it are given first, and nothing behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from tidemark.cli.arrivals import Chunk
from tidemark.errors import ArgumentIllegalError

if TYPE_CHECKING:
    import pyarrow as pa


class FieldNames(NamedTuple):
    """Which fields or columns are what; body None: all of the row, as JSON."""

    body: str | None = None
    key: str | None = None
    tag: str | None = None


class LineRow(NamedTuple):
    """One message."""

    body: bytes
    key: str | None = None
    tag: str | None = None


class LineRows(NamedTuple):
    """Messages in a row. first: number of the first one's line in the input."""

    rows: list[LineRow]
    first: int
    unit: str = "line"


class TableRows(NamedTuple):
    """The same, as a table; its first row's number in the input."""

    table: pa.Table
    names: FieldNames
    first: int
    unit: str = "row"


Rows = LineRows | TableRows


def rows_of_lines(chunks: Iterable[Chunk]) -> Iterator[LineRows]:
    """Each line a body, byte for byte."""
    for first, lines in chunks:
        good = lines.index(b"") if b"" in lines else len(lines)
        if good:
            yield LineRows(list(map(LineRow, lines[:good])), first)
        if good < len(lines):
            raise malformed("line", first + good, "it is empty, and a message needs a body")


def rows_of_json_lines(chunks: Iterable[Chunk], names: FieldNames) -> Iterator[LineRows]:
    """Each line a JSON object: as it stands the body, or one of its fields."""
    for first, lines in chunks:
        messages: list[LineRow] = []
        fault: ArgumentIllegalError | None = None
        for number, line in enumerate(lines, first):
            try:
                messages.append(_message_of(line, names))
            except ValueError as error:
                fault = malformed("line", number, str(error))
                break
        if messages:
            yield LineRows(messages, first)
        if fault is not None:
            raise fault


def _message_of(line: bytes, names: FieldNames) -> LineRow:
    """Of a line of JSON; ValueError tells what is wrong with it."""
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
    return LineRow(body, _text(value, names.key), _text(value, names.tag))


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


def malformed(unit: str, number: int, what: str) -> ArgumentIllegalError:
    """What is said of a line or row that is no message."""
    return ArgumentIllegalError(f"{unit} {number}: {what}", **{unit: number})
