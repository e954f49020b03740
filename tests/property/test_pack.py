"""Compiled packing of columns equals the plain encoding of the same rows."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.client.producer.table_columns import ColumnNames, column_slices
from tidemark.format.elements import Element, encode_elements
from tidemark.format.pack import pack_batches
from tidemark.format.primitives import java_hash
from tidemark.format.properties import encode_properties

_TEXT = st.text(st.characters(exclude_characters=" \x01\x02", exclude_categories=["Cs"]), max_size=6)
_ROW = st.tuples(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12), *[st.none() | _TEXT] * 3)


def _element(row: tuple[str, str | None, str | None, str | None]) -> Element:
    body, tag, key, unique_key = row
    named = {"TAGS": tag, "KEYS": key, "UNIQ_KEY": unique_key}
    return Element(body.encode(), encode_properties({name: value for name, value in named.items() if value}))


@settings(deadline=None)
@given(
    rows=st.lists(_ROW, min_size=1, max_size=60),
    cut=st.integers(0, 60),
    skipped=st.integers(0, 10),
    queues=st.integers(1, 5),
    max_count=st.integers(1, 10),
    max_bytes=st.integers(22, 400),
    binary=st.booleans(),
)
def test_packed_batches_equal_the_plain_encoding(
    *,
    rows: list[tuple[str, str | None, str | None, str | None]],
    cut: int,
    skipped: int,
    queues: int,
    max_count: int,
    max_bytes: int,
    binary: bool,
) -> None:
    """There are nulls, empty texts, several chunks and a slice within one; every row comes once, in order."""
    names = ["body", "tag", "key", "unique_key"]
    columns = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    if binary:
        columns = [column.cast(pa.binary()) for column in columns]
    whole = pa.table(columns, names=names)
    table = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)]).slice(skipped)
    rows = rows[skipped:]

    seen: dict[int, list[int]] = {}
    for first_row, part in column_slices(table, ColumnNames(*names)):
        for queue_id, numbers, packed in pack_batches(
            part, queues=queues, max_count=max_count, max_bytes=max_bytes, first_row=first_row
        ):
            chosen = [first_row + number for number in numbers.tolist()]
            assert packed == encode_elements([_element(rows[number]) for number in chosen])
            assert len(chosen) <= max_count
            assert len(packed) <= max_bytes or len(chosen) == 1
            seen.setdefault(queue_id, []).extend(chosen)
    assert sorted(number for numbers in seen.values() for number in numbers) == list(range(len(rows)))
    for queue_id, in_queue in seen.items():
        assert in_queue == sorted(in_queue)
        for number in in_queue:
            key = rows[number][2]
            assert queue_id == (abs(java_hash(key)) if key else number) % queues


_KEYS = st.lists(_TEXT.filter(bool), max_size=3)
_PROPERTIES = st.dictionaries(_TEXT.filter(bool), _TEXT, max_size=3)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(_KEYS, _PROPERTIES), min_size=1, max_size=30), queues=st.integers(1, 5))
def test_other_properties_follow_the_keys_and_the_first_key_selects_the_queue(
    rows: list[tuple[list[str], dict[str, str]]], queues: int
) -> None:
    """The result is the plain encoding of all properties in that order."""
    keys = [" ".join(row[0]) for row in rows]
    others = [encode_properties(row[1]) for row in rows]
    table = pa.table({"body": [b"x"] * len(rows), "key": keys, "properties": pa.array(others, pa.binary())})
    names = ColumnNames("body", key="key", properties="properties")
    ((_, columns),) = column_slices(table, names)
    for queue_id, numbers, packed in pack_batches(
        columns, queues=queues, max_count=7, max_bytes=1 << 20, several_keys=True
    ):
        elements = []
        for number in numbers.tolist():
            listed, properties = rows[number]
            assert queue_id == (abs(java_hash(listed[0])) if listed else number) % queues
            keyed = encode_properties({"KEYS": " ".join(listed)}) if listed else b""
            elements.append(Element(b"x", keyed + encode_properties(properties)))
        assert packed == encode_elements(elements)
