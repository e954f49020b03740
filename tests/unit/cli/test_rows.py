"""Lines as messages, and what is wrong with lines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tidemark.cli.arrivals import Chunk
from tidemark.cli.rows import FieldNames, LineRow, LineRows, rows_of_json_lines, rows_of_lines
from tidemark.errors import ArgumentIllegalError


def _until_failure(rows: Iterator[LineRows]) -> tuple[list[LineRow], ArgumentIllegalError | None]:
    """(rows that were given, what was raised behind them)."""
    given: list[LineRow] = []
    try:
        for some in rows:
            given += some.rows
    except ArgumentIllegalError as error:
        return given, error
    return given, None


def _json(lines: list[bytes], *names: str | None) -> tuple[list[LineRow], ArgumentIllegalError | None]:
    return _until_failure(rows_of_json_lines([Chunk(1, lines)], FieldNames(*names)))


def test_a_line_is_a_body_byte_for_byte() -> None:
    """Also what is no text."""
    assert _until_failure(rows_of_lines([Chunk(1, [b"a", b"\xff\x00 "])])) == (
        [LineRow(b"a"), LineRow(b"\xff\x00 ")],
        None,
    )


def test_an_empty_line_is_named_and_nothing_behind_it_is_given() -> None:
    """What is before it is."""
    given, error = _until_failure(rows_of_lines([Chunk(11, [b"a", b"b", b"", b"c"])]))
    assert [row.body for row in given] == [b"a", b"b"]
    assert error is not None
    assert (error.line, "line 13" in error.message) == (13, True)


def test_an_object_is_a_body_as_it_stands() -> None:
    """Key and tag are fields of it; numbers become text, null is none."""
    lines = [b'{"id": 7,  "kind": "a"}', b'{"id": "x", "kind": null}']
    given, error = _json(lines, None, "id", "kind")
    assert error is None
    assert given == [LineRow(lines[0], "7", "a"), LineRow(lines[1], "x")]


def test_a_field_is_a_body() -> None:
    """Text as it is, anything else as JSON."""
    given, _ = _json([b'{"b": "text"}', b'{"b": {"x": 1}}'], "b")
    assert [row.body for row in given] == [b"text", b'{"x":1}']


@pytest.mark.parametrize(
    ("line", "names", "what"),
    [
        (b"{", (), "unexpected end"),
        (b"", (), "zero-length"),
        (b"[1]", (), "no object"),
        (b'{"a": 1}', (None, "id"), "no field 'id'"),
        (b'{"id": [1]}', (None, "id"), "neither text nor a whole number"),
        (b'{"id": true}', (None, None, "id"), "neither text nor a whole number"),
        (b'{"b": null}', ("b",), "needs a body"),
        (b'{"b": ""}', ("b",), "needs a body"),
        (b'{"b": "\xff"}', ("b",), "utf-8"),
    ],
)
def test_a_malformed_line_of_json_is_named(line: bytes, names: tuple[str | None, ...], what: str) -> None:
    """With what is wrong with it."""
    good = b'{"id": 1, "b": "x"}'
    given, error = _json([good, line, good], *names)
    assert len(given) == 1
    assert error is not None
    assert error.line == 2
    assert what.lower() in error.message.lower()


def test_lines_are_read_and_sent_without_pyarrow_and_numpy() -> None:
    """Neither is imported: an installed client need not have them."""
    program = (
        "import sys, tidemark.cli.produce, tidemark.cli.rows, tidemark.cli.sending\n"
        "assert not {'numpy', 'pyarrow'} & sys.modules.keys()"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
