from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pytest

from tidemark.client.producer import table_columns
from tidemark.client.producer.table_columns import ColumnNames, column_slices, to_arrow
from tidemark.errors import ArgumentIllegalError, PropertiesIllegalError
from tidemark.format.pack import ABSENT, Column


def values_of(column: Column) -> list[bytes]:
    data, starts = column
    return [bytes(data[begin:end]) for begin, end in pairwise(starts)]


def bodies(table: pa.Table, name: str | None = "b") -> list[bytes]:
    return [body for _, columns in column_slices(table, ColumnNames(body=name)) for body in values_of(columns.body)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array(["a", "é"]), [b"a", "é".encode()]),
        (pa.array([b"a", b"\xff"]), [b"a", b"\xff"]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), [b"ab", b"cd"]),
        (pa.array(["a", "b", "a"]).dictionary_encode(), [b"a", b"b", b"a"]),
        (pa.array([7, -8]), [b"7", b"-8"]),
        (pa.array(["a", None, "b"]), [b"a", b"", b"b"]),
        (pa.array([b"a", None]), [b"a", b""]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_a_column_is_its_bytes_or_its_text_and_null_is_empty(values: pa.Array, expected: list[bytes]) -> None:
    assert bodies(pa.table({"b": values})) == expected


def test_chunks_and_slices_of_a_column_keep_its_rows() -> None:
    chunks = pa.chunked_array([["a", "b"], [], ["c", "d"]])
    assert bodies(pa.table({"b": chunks}).slice(1, 2)) == [b"b", b"c"]


def test_columns_without_a_name_are_absent() -> None:
    ((first_row, columns),) = column_slices(pa.table({"b": ["x"], "k": [7]}), ColumnNames(body="b", key="k"))
    assert (first_row, values_of(columns.key)) == (0, [b"7"])
    assert columns.tag is ABSENT and columns.unique_key is ABSENT and columns.properties is ABSENT


def test_without_a_body_the_row_is_json() -> None:
    table = pa.table({"n": [1, 2], "s": ["a", None]})
    assert [orjson.loads(body) for body in bodies(table, None)] == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]


def test_slices_of_a_large_table_cover_it_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_columns, "_SLICE_ROWS", 3)
    table = pa.table({"b": [str(n) for n in range(8)]})
    slices = list(column_slices(table, ColumnNames(body="b")))
    assert [first_row for first_row, _ in slices] == [0, 3, 6]
    assert bodies(table) == [str(n).encode() for n in range(8)]


def test_slices_of_large_rows_hold_fewer_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_columns, "_SLICE_BYTES", 2000)
    slices = list(column_slices(pa.table({"b": ["x" * 996] * 5}), ColumnNames(body="b")))
    assert [first_row for first_row, _ in slices] == [0, 2, 4]


def test_a_column_of_lists_is_refused_with_its_name() -> None:
    with pytest.raises(ArgumentIllegalError) as refused:
        bodies(pa.table({"b": [[1], [2]]}))
    assert (refused.value.facts["column"], refused.value.facts["row"]) == ("b", 0)


def test_a_key_that_is_not_utf8_is_refused_with_its_table_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_columns, "_SLICE_ROWS", 2)
    table = pa.table({"b": ["x"] * 4, "k": [b"a", None, b"c", b"\xff"]})
    with pytest.raises(PropertiesIllegalError) as refused:
        list(column_slices(table, ColumnNames(body="b", key="k")))
    assert (refused.value.facts["column"], refused.value.facts["row"]) == ("k", 3)


def test_a_missing_column_raises_key_error() -> None:
    with pytest.raises(KeyError):
        bodies(pa.table({"b": ["x"]}), "c")


class Stream:
    """A table of another library, which exports itself through the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.table({"b": ["x"]}).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("table", [pa.table({"b": ["x"]}), pd.DataFrame({"b": ["x"]}, index=[7]), Stream()])
def test_tables_of_several_libraries_are_accepted(table: Any) -> None:
    assert to_arrow(table).to_pydict() == {"b": ["x"]}


def test_missing_values_of_a_frame_are_null() -> None:
    assert to_arrow(pd.DataFrame({"x": [0.5, np.nan]})).to_pydict() == {"x": [0.5, None]}


@pytest.mark.parametrize("table", [[{"b": "x"}], "b"])
def test_an_object_that_is_not_a_table_is_refused(table: Any) -> None:
    with pytest.raises(TypeError, match="is not a table"):
        to_arrow(table)
