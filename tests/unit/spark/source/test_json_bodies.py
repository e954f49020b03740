"""JSON bodies as columns: valid ones are parsed together by Arrow, with the result of separate parsing."""

from __future__ import annotations

import json
import string
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema

from tidemark.spark.ddl import parse_ddl
from tidemark.spark.source import json_bodies
from tidemark.spark.source.json_bodies import JsonBodies, texts_of_nulls

_SCHEMA = (
    "a int, s string, f double, t timestamp, d date, l array<int>, o struct<x: long, y: array<date>>, n decimal(6,2)"
)


def parser(ddl: str = _SCHEMA) -> JsonBodies:
    """Return a parser for Spark's own Arrow types."""
    return JsonBodies(list(to_arrow_schema(parse_ddl(ddl), timezone="UTC")))


def parse(*bodies: bytes, ddl: str = _SCHEMA) -> list[dict[str, Any] | None]:
    """Return a row per body with its non-null fields; None for an invalid body."""
    rows = parser(ddl).parse(pa.array(bodies, pa.binary()))
    rows.validate(full=True)
    assert rows.type == parser(ddl).parse(pa.array([b"{}"], pa.binary())).type
    return [row and {name: value for name, value in row.items() if value is not None} for row in rows.to_pylist()]


def test_json_fields_become_columns() -> None:
    """A missing field is null, an additional one is ignored, and line breaks do not matter."""
    pretty = json.dumps(
        {"a": 1, "o": {"x": 2, "y": ["2013-01-02", None], "z": {}}, "l": [None, 3], "q": [{}]}, indent=2
    )
    rows = parse(pretty.encode(), b'{"s": "gr\\u00fcn \xc3\xbc", "a": null}', b" \n{}\t", b'{"f": 3, "n": 1.5}')
    assert [str(row) for row in rows] == [
        "{'a': 1, 'l': [None, 3], 'o': {'x': 2, 'y': [datetime.date(2013, 1, 2), None]}}",
        "{'s': 'grün ü'}",
        "{}",
        "{'f': 3.0, 'n': Decimal('1.50')}",
    ]


def test_json_times_without_a_zone_are_utc() -> None:
    """Dates are times too."""
    texts = [b"2013-01-01", b"2013-01-01 05:06:07", b"2013-01-01T05:06:07.25Z", b"2013-01-01T05:06:07+02:00"]
    rows = parse(*[b'{"t": "%s"}' % text for text in texts])
    assert [row and row["t"].isoformat() for row in rows] == [
        "2013-01-01T00:00:00+00:00",
        "2013-01-01T05:06:07+00:00",
        "2013-01-01T05:06:07.250000+00:00",
        "2013-01-01T03:06:07+00:00",
    ]


_WRONG = [
    b"", b" ", b"null", b"5", b'"text"', b"[{}]", b"plain text", b"\xff\xfe", b"{", b"}", b"{}{}", b"{} {}", b"{},{}",
    b"{} null", b"{}\nnull", b'{"a": 1} null {"a": 1}', b'{"a": 1}}', b'{"a": 1', b'"a": 1}', b'{"a": 1},',
    b'{"z": {"a": 1}',    b'{"z":', b'{"s": "', b'"}', b'{"z": [', b"]}", b'{"a": "1"}', b'{"a": 1.5}',
    b'{"a": 3000000000}', b'{"s": 1}',
    b'{"s": "\xff"}', b'{"d": "yesterday"}', b'{"t": "yesterday"}', b'{"l": [1, "2"]}', b'{"o": []}',
    b'{"o": {"y": [5]}}', b'{"n": 1.555}', b'{"a": 1, "a": 2}', b"\xef\xbb\xbf{}",
]  # fmt: skip


@pytest.mark.parametrize("body", _WRONG, ids=repr)
def test_an_invalid_body_is_null_and_does_not_affect_others(body: bytes) -> None:
    """Its neighbours keep their values, and it gets none of theirs."""
    assert parse(body) == [None]
    assert parse(b'{"a": 1}', body, b'{"a": 2}') == [{"a": 1}, None, {"a": 2}]


def test_parts_of_an_object_in_several_bodies_are_null() -> None:
    """Two bodies may form one object, or one body two, so that the counts match."""
    assert parse(b'{"z": {"a": 1}', b', "a": 2}', b"{}{}", b'{"a": 3}') == [None, None, None, {"a": 3}]
    assert parse(b'{"z":', b'{"a": 1}}', b'{"a": 3}') == [None, None, {"a": 3}]


def test_a_brace_in_a_string_does_not_end_an_object() -> None:
    """Such a body looks as if more followed after its end."""
    assert parse(b'{"s": "} null"}', b'{"s": "{} {"}') == [{"s": "} null"}, {"s": "{} {"}]


_ROWS = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(-(1 << 31), (1 << 31) - 1) | st.none(),
        "s": st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
        "l": st.lists(st.integers(-5, 5) | st.none(), max_size=3),
        "o": st.fixed_dictionaries({"x": st.integers(0, 1 << 62)}),
        "other": st.dictionaries(
            st.text(string.printable, max_size=3), st.booleans() | st.text(max_size=3), max_size=2
        ),
    },
)


@given(
    rows=st.lists(_ROWS, max_size=12),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
    offset=st.integers(0, 3),
)
def test_objects_of_the_schema_are_read_unchanged(
    rows: list[dict[str, Any]], indent: int | None, ascii_only: bool, offset: int
) -> None:
    """Texts may have any content, and the batch may be a slice."""
    bodies = pa.array([json.dumps(row, indent=indent, ensure_ascii=ascii_only).encode() for row in rows], pa.binary())
    found = parser("a int, s string, l array<int>, o struct<x: long>").parse(bodies.slice(offset)).to_pylist()
    assert found == [{name: row.get(name) for name in ("a", "s", "l", "o")} for row in rows[offset:]]


_TEXT = st.text('{}[]":,. \n\t01aenultrsf\\', max_size=30).map(str.encode)


@st.composite
def _mutated(draw: st.DrawFn) -> bytes:
    """Draw an object with some bytes inserted or removed."""
    body = json.dumps(draw(_ROWS)).encode()
    at, end = sorted(draw(st.tuples(st.integers(0, len(body)), st.integers(0, len(body)))))
    return body[:at] + draw(_TEXT) + body[draw(st.sampled_from([at, end])) :]


@given(bodies=st.lists(_mutated() | _TEXT | st.binary(max_size=6) | st.sampled_from(_WRONG), max_size=8))
def test_the_result_of_a_body_depends_only_on_it(bodies: list[bytes]) -> None:
    """Neighbours may be broken in any way; a body that Python's parser does not accept as an object is null."""
    together = parse(*bodies)
    assert together == [row for body in bodies for row in parse(body)]
    for body, row in zip(bodies, together, strict=True):
        try:
            is_object = isinstance(json.loads(body), dict)
        except ValueError:
            is_object = False
        assert is_object or row is None


def test_large_batches_of_bodies_are_parsed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow accepts at most 2 GiB."""
    monkeypatch.setattr(json_bodies, "_MOST_BYTES", 100)
    assert parse(*[b'{"a": %d}' % number for number in range(100)]) == [{"a": number} for number in range(100)]


def test_no_bodies_give_no_rows() -> None:
    """The empty result has the right type."""
    assert parse() == []


def test_the_texts_of_invalid_bodies_are_kept() -> None:
    """Other texts are not kept."""
    bodies = pa.array([b"{}", b"x\xff", b""], pa.binary())
    assert texts_of_nulls(bodies, parser().parse(bodies)).to_pylist() == [None, "x\ufffd", ""]
    assert texts_of_nulls(bodies[:1], parser().parse(bodies[:1])).to_pylist() == [None]
