"""Input of `produce` from lines and JSON lines, without pyarrow. For tables see `table_input`.

A malformed line is reported with its number. The rows before it are yielded first, and nothing after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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


def rows_of_lines(chunks: Iterable[Chunk], *, exact: bool = False) -> Iterator[LineRows]:
    """Yield each line as a body.

    exact: every byte before a newline belongs to the line. Otherwise, a carriage return before the newline is part of
    the line's end, and a UTF-8 byte order mark at the start of the input is left out.
    """
    for first, lines, _ in chunks if exact else map(text_lines, chunks):
        good = lines.index(b"") if b"" in lines else len(lines)
        if good:
            yield LineRows(list(map(LineRow, lines[:good])), first)
        if good < len(lines):
            raise malformed("line", first + good, "it is empty, but a message needs a body")


def rows_of_json_lines(chunks: Iterable[Chunk], names: FieldNames) -> Iterator[LineRows]:
    """Yield a body for each line, which is a JSON object: the line, or the exact text of one of its fields."""
    for first, lines, _ in map(text_lines, chunks):
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
