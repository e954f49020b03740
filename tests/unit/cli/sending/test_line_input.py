"""Lines as messages, and the errors of malformed lines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tidemark.cli.sending.line_input import FieldNames, LineRow, LineRows, rows_of_json_lines, rows_of_lines
from tidemark.cli.sending.line_reader import Chunk
from tidemark.errors import ArgumentIllegalError


def _until_failure(rows: Iterator[LineRows]) -> tuple[list[LineRow], ArgumentIllegalError | None]:
    """Return the rows that were yielded, and the error that ended them."""
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
    """The body may be any bytes, not only text."""
    assert _until_failure(rows_of_lines([Chunk(1, [b"a", b"\xff\x00 "])])) == (
        [LineRow(b"a"), LineRow(b"\xff\x00 ")],
        None,
    )


def test_an_empty_line_is_reported_and_ends_the_rows() -> None:
    """The rows before it are yielded."""
    given, error = _until_failure(rows_of_lines([Chunk(11, [b"a", b"b", b"", b"c"])]))
    assert [row.body for row in given] == [b"a", b"b"]
    assert error is not None
    assert (error.line, "line 13" in error.message) == (13, True)


def test_a_json_object_is_a_body_byte_for_byte() -> None:
    """Key and tag are taken from its fields; numbers become text, null is no value."""
    lines = [b'{"id": 7,  "kind": "a"}', b'{"id": "x", "kind": null}']
    given, error = _json(lines, None, "id", "kind")
    assert error is None
    assert given == [LineRow(lines[0], "7", "a"), LineRow(lines[1], "x")]


def test_a_json_field_can_be_the_body() -> None:
    """Text is decoded; any other value is copied unchanged from the line."""
    given, _ = _json([b'{"b": "text"}', b'{"b": {"x": 1}}'], "b")
    assert [row.body for row in given] == [b"text", b'{"x": 1}']


@pytest.mark.parametrize(
    "text",
    [
        "123456789012345678901234567890",
        "1.10",
        "-0.0",
        '{"x":1.10,"x":2, "n":123456789012345678901234567890}',
        '[ 1, {"a" : "}" } ]',
        "false",
        "-0",
        "1E2",
        "0.1e-3",
        '["\\ud83d\\ude00", "\\u0041"]',
        "[]",
        "{}",
        "1" * 5000 + ".5e-4990",
        "0",
        '{"b": {"b": "\\u00fc\\" }"}}',
    ],
)
def test_a_json_field_used_as_body_keeps_its_text(text: str) -> None:
    """The field may be anywhere among others, with and without spaces."""
    lines = [f'{{"a":[1,2],"b":{text},"c":"b"}}', f' {{ "a" : "\\"b\\":" , "b" :\t{text} }} ']
    given, error = _json([line.encode() for line in lines], "b")
    assert error is None
    assert [row.body for row in given] == [text.encode()] * 2


def test_an_integer_key_keeps_its_digits() -> None:
    given, error = _json([b'{"k":123456789012345678901234567890}', b'{"k":-7}'], None, "k")
    assert error is None
    assert [row.key for row in given] == ["123456789012345678901234567890", "-7"]


def test_crlf_ends_a_line_and_a_byte_order_mark_is_removed() -> None:
    """A carriage return elsewhere, and a mark on a later line, are content."""
    chunks = [Chunk(1, [b"\xef\xbb\xbfone\r", b"t\rwo\r\r"]), Chunk(3, [b"\xef\xbb\xbfthree"])]
    given, error = _until_failure(rows_of_lines(chunks))
    assert error is None
    assert [row.body for row in given] == [b"one", b"t\rwo\r", b"\xef\xbb\xbfthree"]


def test_a_carriage_return_at_the_end_of_the_input_ends_no_line() -> None:
    given, error = _until_failure(rows_of_lines([Chunk(1, [b"one\rtwo\r"], has_end=False)]))
    assert error is None
    assert [row.body for row in given] == [b"one\rtwo\r"]


def test_exact_lines_keep_every_byte() -> None:
    lines = [b"\xef\xbb\xbfone\r", b"\r"]
    given, error = _until_failure(rows_of_lines([Chunk(1, lines)], exact=True))
    assert error is None
    assert [row.body for row in given] == lines


def test_an_empty_line_that_ends_with_crlf_is_reported() -> None:
    given, error = _until_failure(rows_of_lines([Chunk(1, [b"one\r", b"\r", b"two\r"])]))
    assert [row.body for row in given] == [b"one"]
    assert error is not None
    assert error.line == 2


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_refused_with_a_remedy(encoding: str) -> None:
    data = "one\ntwo\n".encode(encoding)
    mark = b"" if encoding == "utf-16" else b"\xfe\xff"
    given, error = _until_failure(rows_of_lines([Chunk(1, (mark + data).split(b"\n"))]))
    assert given == []
    assert error is not None
    assert "line 1: it begins with the byte order mark of UTF-16; convert it" in error.message


def test_lines_of_json_may_end_with_crlf_and_begin_with_a_byte_order_mark() -> None:
    given, error = _json([b'\xef\xbb\xbf{"k":"1"}\r', b'{"k":"2"}\r'], None, "k")
    assert error is None
    assert given == [LineRow(b'{"k":"1"}', "1"), LineRow(b'{"k":"2"}', "2")]


@pytest.mark.parametrize(
    ("line", "names", "what"),
    [
        (b"{", (), "unexpected end"),
        (b"", (), "zero-length"),
        (b"[1]", (), "not an object"),
        (b'{"a": 1}', (None, "id"), "no field 'id'"),
        (b'{"id": [1]}', (None, "id"), "neither text nor a whole number"),
        (b'{"id": true}', (None, None, "id"), "neither text nor a whole number"),
        (b'{"k": 1.0}', (None, "k"), "neither text nor a whole number"),
        (b'{"k": 1e3}', (None, "k"), "neither text nor a whole number"),
        (b'{"k": "1", "k": "2"}', (None, "k"), "the field 'k' twice"),
        (b'{"b": 1, "a": 0, "b": 1}', ("b",), "the field 'b' twice"),
        (b'{"k": "\\ud800"}', (None, "k"), "surrogate"),
        (b'{"b": 1e400}', ("b",), "infinity"),
        (b'{"b": null}', ("b",), "needs a body"),
        (b'{"b": ""}', ("b",), "needs a body"),
        (b'{"b": "\xff"}', ("b",), "utf-8"),
    ],
)
def test_a_malformed_json_line_is_reported_with_its_number(
    line: bytes, names: tuple[str | None, ...], what: str
) -> None:
    """The error says what is wrong with the line."""
    good = b'{"id": 1, "k": 1, "b": "x"}'
    given, error = _json([good, line, good], *names)
    assert len(given) == 1
    assert error is not None
    assert error.line == 2
    assert what.lower() in error.message.lower()


def test_lines_are_read_and_sent_without_pyarrow_and_numpy() -> None:
    """An installed client need not have them."""
    program = (
        "import sys, tidemark.cli.verbs.produce, tidemark.cli.sending.line_input, tidemark.cli.sending.send_rows\n"
        "assert not {'numpy', 'pyarrow'} & sys.modules.keys()"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
