"""CSV and Parquet files as tables of messages, and the errors of malformed files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.cli.sending import table_input
from tidemark.cli.sending.line_input import FieldNames
from tidemark.cli.sending.table_input import rows_of_csv, rows_of_parquet
from tidemark.errors import ArgumentIllegalError


def _csv(data: bytes, *names: str | None, infer_types: bool = False) -> list[dict[str, Any]]:
    stream = io.BufferedReader(io.BytesIO(data))
    pieces = rows_of_csv(stream, FieldNames(*names), infer_types=infer_types)
    return [row for piece in pieces for row in piece.table.to_pylist()]


def test_csv_values_are_text_unless_types_are_requested() -> None:
    """Leading zeros stay; a value may contain a newline."""
    data = b'\xef\xbb\xbfid,text\n007,"a\nb"\n8,\n'
    assert _csv(data) == [{"id": "007", "text": "a\nb"}, {"id": "8", "text": ""}]
    assert _csv(data, infer_types=True) == [{"id": 7, "text": "a\nb"}, {"id": 8, "text": ""}]
    assert _csv(b"id,text\n") == []


@pytest.mark.parametrize("value", ['"a,\n""b"', 'a"b', '"a"b"c', "\ufeffa", '""', "a"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_rows_are_whole_wherever_a_block_of_the_file_ends(
    monkeypatch: pytest.MonkeyPatch, value: str, newline: str
) -> None:
    """A quote within a value does not begin a quoted value."""
    given = f"k,v{newline}" + "".join(f"{number},{value}{newline}" for number in range(9)) + f"9,{value}"
    parsed = value[1:-1].replace('""', '"') if value.endswith('"') else value.replace('"a"b', "ab", 1)
    for size in range(len(f"9,{value}{newline}".encode()), 40):
        monkeypatch.setattr(table_input, "_CSV_BLOCK_BYTES", size)
        assert _csv(given.encode()) == [{"k": str(number), "v": parsed} for number in range(10)]


def test_an_empty_line_of_a_single_column_is_an_empty_value() -> None:
    """The line is not skipped: as a body it is refused."""
    assert _csv(b'v\r\na\r\n\r\n""\r\nb\r\n') == [{"v": "a"}, {"v": ""}, {"v": ""}, {"v": "b"}]


@pytest.mark.parametrize(
    ("data", "row", "what"),
    [
        (b"a,b\n1,2\n3\n", 3, "Expected 2 columns, got 1"),
        (b"a,b\n" + b"1,2\n" * 3_000_000 + b"3,4,5\n", 3_000_002, "Expected 2 columns, got 3"),
        (b"a,b\n1,2\n3,\xff\n", 3, "UTF8"),
        (b'a,b\n1,2\n"3,4\n', 3, "got 1"),
        (b'a,b\n1,2\n"3,' + b"4\n" * 9_000_000, 3, "longer than 8388608 bytes"),
        (b"", 1, "header is missing"),
        (b"a,a\n1,2\n", 1, "twice"),
        (b"\xff,b\n", 1, "header"),
    ],
)
def test_a_malformed_csv_row_is_reported_with_its_number(data: bytes, row: int, what: str) -> None:
    """The header is row 1; later blocks of the file count on."""
    with pytest.raises(ArgumentIllegalError, match=what) as raised:
        _csv(data)
    assert raised.value.row == row


def test_rows_of_parquet_keep_their_types(tmp_path: Path) -> None:
    """Rows are read in pieces and numbered consecutively."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": range(70_000)}), path)
    pieces = list(rows_of_parquet(path, FieldNames(None, "id")))
    assert [piece.first for piece in pieces] == [1, 65_537]
    assert pieces[1].table["id"][0].as_py() == 65_536


def test_an_invalid_parquet_file_is_refused(tmp_path: Path) -> None:
    """A truncated file is refused too."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": range(1000)}), path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ArgumentIllegalError, match="Parquet file is invalid"):
        list(rows_of_parquet(path, FieldNames()))


def test_a_missing_column_is_reported_with_the_existing_ones(tmp_path: Path) -> None:
    """The error lists the existing columns."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    with pytest.raises(ArgumentIllegalError, match="no column 'no'; there are id"):
        list(rows_of_parquet(path, FieldNames("no")))
    with pytest.raises(ArgumentIllegalError, match="no column 'no'; there are a, b"):
        _csv(b"a,b\n1,2\n", None, "no")
