"""Input of `produce` from lines and JSON lines, without pyarrow. For tables see `table_input`.

A malformed line is reported with its number. The rows before it are yielded first, and nothing after it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from tidemark.cli.sending.line_reader import Chunk, text_lines
from tidemark.errors import ArgumentIllegalError
from tidemark.format.json_text import JsonWalk

if TYPE_CHECKING:
    import pyarrow as pa

_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)")


class FieldNames(NamedTuple):
    """Names of fields or columns by role; body None: the whole row, as JSON."""

    body: str | None = None
    key: str | None = None
    tag: str | None = None


class LineRow(NamedTuple):
    """One message."""

    body: bytes
    key: str | None = None
    tag: str | None = None
    properties: Mapping[str, str] = MappingProxyType({})


class CommonParts(NamedTuple):
    """Parts of all messages of a `produce`. delay_level: 0 for no delay."""

    key: str | None
    tag: str | None
    properties: Mapping[str, str]
    delay_level: int


class LineRows(NamedTuple):
    """Consecutive messages. first: line number of the first one in the input."""

    rows: list[LineRow]
    first: int
    unit: str = "line"


class TableRows(NamedTuple):
    """Consecutive messages as a table. first: row number of the first one in the input."""

    table: pa.Table
    names: FieldNames
    first: int
    unit: str = "row"


Rows = LineRows | TableRows


def rows_of_lines(
    chunks: Iterable[Chunk], *, exact: bool = False, separator: bytes | None = None
) -> Iterator[LineRows]:
    """Yield each line as a body, or as a key and a body around the first *separator*.

    exact: every byte before a newline belongs to the line. Otherwise, a carriage return before the newline is part of
    the line's end, and a UTF-8 byte order mark at the start of the input is left out.
    """
    for first, lines, _ in chunks if exact else map(text_lines, chunks):
        yield from _rows_until_fault(first, lines, lambda line: _row_of(line, separator))


def rows_of_json_lines(chunks: Iterable[Chunk], names: FieldNames) -> Iterator[LineRows]:
    """Yield a body for each line, which is a JSON object: the line, or the exact text of one of its fields."""
    for first, lines, _ in map(text_lines, chunks):
        yield from _rows_until_fault(first, lines, lambda line: _message_of(line, names))


def with_parts(rows: Iterator[Rows], parts: CommonParts) -> Iterator[Rows]:
    """Yield the rows of lines with *parts*; a key or tag of the line itself takes precedence."""
    for some in rows:
        if isinstance(some, LineRows):
            of_all = [
                LineRow(row.body, row.key or parts.key, row.tag or parts.tag, parts.properties) for row in some.rows
            ]
            yield LineRows(of_all, some.first, some.unit)
        else:
            yield some


def _rows_until_fault(first: int, lines: Iterable[bytes], row_of: Callable[[bytes], LineRow]) -> Iterator[LineRows]:
    """Yield the rows before the first malformed line, then raise its fault. row_of raises ValueError with it."""
    rows: list[LineRow] = []
    fault: ArgumentIllegalError | None = None
    for number, line in enumerate(lines, first):
        try:
            rows.append(row_of(line))
        except ValueError as error:
            fault = malformed("line", number, str(error))
            break
    if rows:
        yield LineRows(rows, first)
    if fault is not None:
        raise fault


def _row_of(line: bytes, separator: bytes | None) -> LineRow:
    if not line:
        raise ValueError("it is empty, but a message needs a body")
    if separator is None:
        return LineRow(line)
    key, found, body = line.partition(separator)
    if not found:
        raise ValueError(f"it has no separator {separator.decode('utf-8', 'backslashreplace')!r}")
    if not body:
        raise ValueError("it has no body after its key, but a message needs a body")
    try:
        return LineRow(body, key.decode() or None)
    except UnicodeDecodeError:
        raise ValueError("its key is not UTF-8") from None


def _message_of(line: bytes, names: FieldNames) -> LineRow:
    """Return the message of a line of JSON. Raises ValueError with the line's fault."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg}, at column {error.colno}") from None
    if not isinstance(value, dict):
        raise ValueError("it is JSON, but not an object")
    if not any(names):
        return LineRow(line)
    texts = _member_texts(line, names)
    body = line
    if names.body is not None:
        field = _field(value, names.body)
        body = (field if isinstance(field, str) else texts[names.body]).encode()
        if field is None or not body:
            raise ValueError(f"its field {names.body!r} is empty, but a message needs a body")
    return LineRow(body, _text(value, texts, names.key), _text(value, texts, names.tag))


def _member_texts(line: bytes, names: FieldNames) -> dict[str, str]:
    """Return the exact text of each wanted member of the line: decoding can change a number.

    Raises:
        ValueError: a member occurs twice, so that its value is ambiguous, or is nested too deeply.
    """
    walk = JsonWalk(line.decode())
    texts: dict[str, str] = {}
    for name in walk.members():
        if name in texts:
            raise ValueError(f"it has the field {name!r} twice, so its value is ambiguous")
        if name in names:
            texts[name] = walk.text()
    return texts


def _text(value: dict[str, Any], texts: dict[str, str], name: str | None) -> str | None:
    """Return a key or tag: a string, or a whole number with the digits from the line."""
    if name is None:
        return None
    field = _field(value, name)
    if field is None or isinstance(field, str):
        return field
    if not _WHOLE_NUMBER.fullmatch(texts[name]):
        raise ValueError(f"its field {name!r} is neither text nor a whole number")
    return texts[name]


def _field(value: dict[str, Any], name: str) -> Any:
    if name not in value:
        raise ValueError(f"it has no field {name!r} (use null for none)")
    return value[name]


def malformed(unit: str, number: int, what: str) -> ArgumentIllegalError:
    """Return the error for a malformed line or row."""
    return ArgumentIllegalError(f"{unit} {number}: {what}", **{unit: number})
