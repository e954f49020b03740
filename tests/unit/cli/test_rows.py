"""Files as tables of messages, and what is wrong with files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.cli.arrivals import Chunk
from tidemark.cli.rows import FieldNames, Rows, rows_of_csv, rows_of_json_lines, rows_of_lines, rows_of_parquet
from tidemark.errors import ArgumentIllegalError


def _until_failure(rows: Iterator[Rows]) -> tuple[list[dict[str, Any]], ArgumentIllegalError | None]:
    """(rows that were given, what was raised behind them)."""
    given: list[dict[str, Any]] = []
    try:
        for some in rows:
            given += some.table.to_pylist()
    except ArgumentIllegalError as error:
        return given, error
    return given, None


def _json(lines: list[bytes], *names: str | None) -> tuple[list[dict[str, Any]], ArgumentIllegalError | None]:
    return _until_failure(rows_of_json_lines([Chunk(1, lines)], FieldNames(*names)))


def _csv(data: bytes, *names: str | None, infer_types: bool = False) -> list[dict[str, Any]]:
    stream = io.BufferedReader(io.BytesIO(data))
    given, error = _until_failure(rows_of_csv(stream, FieldNames(*names), infer_types=infer_types))
    if error is not None:
        raise error
    return given


def test_a_line_is_a_body_byte_for_byte() -> None:
    """Also what is no text."""
    assert _until_failure(rows_of_lines([Chunk(1, [b"a", b"\xff\x00 "])])) == (
        [{"body": b"a"}, {"body": b"\xff\x00 "}],
        None,
    )


def test_an_empty_line_is_named_and_nothing_behind_it_is_given() -> None:
    """What is before it is."""
    given, error = _until_failure(rows_of_lines([Chunk(11, [b"a", b"b", b"", b"c"])]))
    assert [row["body"] for row in given] == [b"a", b"b"]
    assert error is not None
    assert (error.line, "line 13" in error.message) == (13, True)


def test_an_object_is_a_body_as_it_stands() -> None:
    """Key and tag are fields of it; numbers become text, null is none."""
    lines = [b'{"id": 7,  "kind": "a"}', b'{"id": "x", "kind": null}']
    given, error = _json(lines, None, "id", "kind")
    assert error is None
    assert given == [{"body": lines[0], "key": "7", "tag": "a"}, {"body": lines[1], "key": "x", "tag": None}]


def test_a_field_is_a_body() -> None:
    """Text as it is, anything else as JSON."""
    given, _ = _json([b'{"b": "text"}', b'{"b": {"x": 1}}'], "b")
    assert [row["body"] for row in given] == [b"text", b'{"x":1}']


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


def test_csv_is_text_unless_types_are_wanted() -> None:
    """Leading zeros stay; a value may hold a newline."""
    data = b'\xef\xbb\xbfid,text\n007,"a\nb"\n8,\n'
    assert _csv(data) == [{"id": "007", "text": "a\nb"}, {"id": "8", "text": ""}]
    assert _csv(data, infer_types=True) == [{"id": 7, "text": "a\nb"}, {"id": 8, "text": ""}]
    assert _csv(b"id,text\n") == []


@pytest.mark.parametrize(
    ("data", "row", "what"),
    [
        (b"a,b\n1,2\n3\n", 3, "Expected 2 columns, got 1"),
        (b"a,b\n" + b"1,2\n" * 3_000_000 + b"3,4,5\n", 3_000_002, "Expected 2 columns, got 3"),
        (b"a,b\n1,2\n3,\xff\n", 3, "UTF8"),
        (b"", 1, "no header"),
        (b"a,a\n1,2\n", 1, "twice"),
        (b"\xff,b\n", 1, "header"),
    ],
)
def test_a_malformed_row_of_csv_is_named(data: bytes, row: int, what: str) -> None:
    """The header is row 1; also in a later block of the file."""
    with pytest.raises(ArgumentIllegalError, match=what) as raised:
        _csv(data)
    assert raised.value.row == row


def test_rows_of_parquet_keep_their_types(tmp_path: Path) -> None:
    """Piece by piece, numbered on."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": range(70_000)}), path)
    pieces = list(rows_of_parquet(path, FieldNames(None, "id")))
    assert [piece.first for piece in pieces] == [1, 65_537]
    assert pieces[1].table["id"][0].as_py() == 65_536


def test_what_is_no_parquet_is_told(tmp_path: Path) -> None:
    """Also a file that was cut."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": range(1000)}), path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ArgumentIllegalError, match="no Parquet file"):
        list(rows_of_parquet(path, FieldNames()))


def test_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With those that are."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(ArgumentIllegalError, match="no column 'no'; there are id"):
        list(rows_of_parquet(path, FieldNames("no")))
    with pytest.raises(ArgumentIllegalError, match="no column 'no'; there are a, b"):
        _csv(b"a,b\n1,2\n", None, "no")
