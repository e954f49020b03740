"""A table as messages, against a fake writer."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pytest

from tests.unit.client.fake_writer import FakeWriter, Result, refusal
from tidemark.client import Producer, SendStatus
from tidemark.errors import (
    ArgumentIllegalError,
    BatchEmptyError,
    PropertiesIllegalError,
    PropertiesSizeExceededError,
    TopicForbiddenError,
)
from tidemark.format.message_id import decode_unique_key
from tidemark.format.primitives import java_hash
from tidemark.format.properties import decode_properties


def test_every_row_is_stored_at_the_offset_in_the_result(writer: FakeWriter, producer: Producer) -> None:
    """The result has one queue id and one offset per row."""
    n = 5000
    table = pa.table(
        {"k": [f"key{i % 37}" for i in range(n)], "b": [f"body {i}" for i in range(n)], "t": ["A", None] * (n // 2)}
    )
    acknowledged: list[int] = []
    result = producer.send_table(
        table, "t", key="k", body="b", tag="t", batch_size=100, on_acknowledged=acknowledged.append
    )

    assert sum(acknowledged) == n == result.count
    assert result.status is SendStatus.PUT_OK
    for row in (0, 1, 777, n - 1):
        element = writer.stored[int(result.queue_ids[row])][int(result.queue_offsets[row])]
        assert element.body == f"body {row}".encode()
        tags = {} if row % 2 else {"TAGS": "A"}
        properties = decode_properties(element.properties)
        assert decode_unique_key(properties.pop("UNIQ_KEY")).pid == os.getpid() & 0xFFFF
        assert properties == {**tags, "KEYS": f"key{row % 37}"}
    keys = table["k"].to_pylist()
    assert result.queue_ids.tolist() == [abs(java_hash(key)) % 4 for key in keys]
    for queue_id in range(4):  # rows of one queue keep the table's order
        assert np.all(np.diff(result.queue_offsets[result.queue_ids == queue_id]) == 1)


def test_a_pandas_frame_without_body_is_sent_as_json(writer: FakeWriter, producer: Producer) -> None:
    """Each row is an object; missing values are null."""
    frame = pd.DataFrame({"n": [1, 2], "x": [0.5, float("nan")], "s": ["a", None]})
    result = producer.send_table(frame, "t")
    bodies = [writer.stored[q][o].body for q, o in zip(result.queue_ids, result.queue_offsets, strict=True)]
    assert [orjson.loads(body) for body in bodies] == [
        {"n": 1, "x": 0.5, "s": "a"},
        {"n": 2, "x": None, "s": None},
    ]


def test_numbers_may_be_keys(writer: FakeWriter, producer: Producer) -> None:
    """A column of integers is written as decimal text."""
    result = producer.send_table(pa.table({"k": [7, 8], "b": [b"x", b"y"]}), "t", key="k", body="b")
    element = writer.stored[int(result.queue_ids[0])][0]
    assert decode_properties(element.properties)["KEYS"] == "7"


def test_an_empty_table_sends_nothing(writer: FakeWriter, producer: Producer) -> None:
    result = producer.send_table(pa.table({"b": pa.array([], pa.string())}), "t", body="b")
    assert (result.count, result.results, result.end_physical_offset) == (0, (), 0)
    assert writer.received == []


def test_a_row_without_a_body_is_reported_with_its_number(producer: Producer) -> None:
    """A fact of the error is the row number."""
    with pytest.raises(BatchEmptyError) as raised:
        producer.send_table(pa.table({"b": ["x", "y", None]}), "t", body="b")
    assert raised.value.facts == {"row": 2}


def test_a_key_with_a_space_is_refused(producer: Producer) -> None:
    """It would be two keys."""
    with pytest.raises(PropertiesIllegalError):
        producer.send_table(pa.table({"b": ["x"], "k": ["two words"]}), "t", body="b", key="k")


def test_an_unknown_column_is_a_key_error(producer: Producer) -> None:
    """The error comes before anything is sent."""
    with pytest.raises(KeyError, match="nope"):
        producer.send_table(pa.table({"b": ["x"]}), "t", body="nope")


def test_a_refusal_reports_how_many_rows_were_acknowledged(writer: FakeWriter, producer: Producer) -> None:
    """A batch is stored as a whole or not at all; a table is not."""
    writer.on_entry = lambda entry: (
        Result(correlation_id=entry.correlation_id, error=refusal("TOPIC_FORBIDDEN"))
        if entry.batch.queue_id == 3
        else None
    )
    with pytest.raises(TopicForbiddenError) as raised:
        producer.send_table(pa.table({"b": ["x"] * 8}), "t", body="b")
    assert raised.value.__notes__ == ["6 of 8 rows were acknowledged"]


def unique_keys(writer: FakeWriter) -> dict[int, list[str]]:
    """Return the UNIQ_KEYs of the stored messages by queue, in order."""
    return {
        queue: [decode_properties(element.properties)["UNIQ_KEY"] for element in elements]
        for queue, elements in writer.stored.items()
    }


def test_each_row_gets_a_unique_key_of_its_own(writer: FakeWriter, producer: Producer) -> None:
    """This holds over several batches and tables."""
    for _ in range(2):
        producer.send_table(pa.table({"b": ["x"] * 5000}), "t", body="b", batch_size=300)
    keys = [key for queue in unique_keys(writer).values() for key in queue]
    assert len(set(keys)) == len(keys) == 10_000
    assert {len(key) for key in keys} == {32}


def test_rows_without_a_unique_key_get_the_same_one_when_repeated(writer: FakeWriter, producer: Producer) -> None:
    """This applies if the first row of the batch has one; a given key stays."""
    table = pa.table({"b": list("abcd"), "u": ["first", None, "third", ""], "k": ["same"] * 4})
    producer.send_table(table, "t", body="b", unique_key="u", key="k")
    producer.send_table(table, "t", body="b", unique_key="u", key="k")
    ((first, second),) = [(keys[:4], keys[4:]) for keys in unique_keys(writer).values()]
    assert first == second
    assert (first[0], first[2]) == ("first", "third")
    assert len(set(first)) == 4


def test_a_row_without_room_for_its_unique_key_is_reported(producer: Producer) -> None:
    """The key needs 42 bytes of its properties."""
    for size, fits in ((32_767 - 42 - 6, True), (32_767 - 42 - 5, False)):
        table = pa.table({"b": ["x", "y"], "t": [None, "t" * size]})
        if fits:
            assert producer.send_table(table, "t", body="b", tag="t").count == 2
            continue
        with pytest.raises(PropertiesSizeExceededError) as raised:
            producer.send_table(table, "t", body="b", tag="t")
        assert raised.value.facts["row"] == 1


class Frame:
    """An object with Arrow's C stream interface and string views, like a polars frame."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def test_any_table_with_arrows_stream_is_sent(writer: FakeWriter, producer: Producer) -> None:
    """It is sent by its columns, and as JSON."""
    views = pa.table(
        {
            "k": pa.array(["a", None, "a-long-key-that-has-no-room-in-the-view"], pa.string_view()),
            "b": pa.array([b"\xff", b"y", b"z" * 20], pa.binary_view()),
        }
    )
    result = producer.send_table(Frame(views), "t", key="k", body="b")
    bodies = [writer.stored[q][o].body for q, o in zip(result.queue_ids, result.queue_offsets, strict=True)]
    assert bodies == [b"\xff", b"y", b"z" * 20]
    writer.stored.clear()
    result = producer.send_table(Frame(views.select(["k"])), "t")
    rows = [writer.stored[q][o].body for q, o in zip(result.queue_ids, result.queue_offsets, strict=True)]
    assert [orjson.loads(row) for row in rows] == views.select(["k"]).to_pylist()


def test_an_object_without_columns_is_refused(producer: Producer) -> None:
    """The error names its type."""
    with pytest.raises(TypeError, match="list"):
        producer.send_table([1, 2], "t")


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (pa.array([["a"]]), "list<"),
        (pa.array([{"a": 1}]), "struct<"),
        (pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "map<"),
    ],
)
@pytest.mark.parametrize("role", ["body", "key", "tag", "unique_key"])
def test_a_column_of_several_values_is_refused_by_its_type(
    writer: FakeWriter, producer: Producer, column: pa.Array, named: str, role: str
) -> None:
    columns: dict[str, Any] = {"body": "b", role: "c"}
    with pytest.raises(ArgumentIllegalError, match=f"column 'c' of type {named}"):
        producer.send_table(pa.table({"c": column, "b": ["x"]}), "t", **columns)
    assert writer.received == []


def test_dictionary_encoded_columns_are_sent_as_their_values(writer: FakeWriter, producer: Producer) -> None:
    texts = pa.array(["k", None, "k"]).dictionary_encode()
    result = producer.send_table(
        pa.table({"k": texts, "b": ["x", "y", "z"], "t": texts}), "t", key="k", body="b", tag="t"
    )
    elements = [writer.stored[q][o] for q, o in zip(result.queue_ids, result.queue_offsets, strict=True)]
    assert [decode_properties(element.properties).get("TAGS") for element in elements] == ["k", None, "k"]


@pytest.mark.parametrize("role", ["key", "tag", "unique_key"])
def test_bytes_that_are_not_utf8_are_refused_as_key_and_tag(producer: Producer, role: str) -> None:
    table = pa.table({"c": [b"ok", None, b"\xff\xfe"], "b": ["x"] * 3})
    columns: dict[str, Any] = {"body": "b", role: "c"}
    with pytest.raises(PropertiesIllegalError, match="row 2, column 'c'") as raised:
        producer.send_table(table, "t", **columns)
    assert raised.value.facts == {"column": "c", "row": 2}


def test_a_value_that_json_cannot_hold_is_refused_before_its_slice_is_sent(
    writer: FakeWriter, producer: Producer
) -> None:
    """The row is numbered in the whole table."""
    values = [0.5] * 70_000 + [float("inf")]
    with pytest.raises(ArgumentIllegalError, match="row 70000, column 'x': inf"):
        producer.send_table(pa.table({"x": values}), "t")
    assert sum(len(elements) for elements in writer.stored.values()) < 70_000
