"""Arrow streams of messages; their pieces keep their order, and large buffers are not copied."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.built_store import BuiltStore
from tests.unit.read.messages.parts import part_of
from tidemark.read.messages.arrow_stream import StreamPieces, TableForm, arrow_stream
from tidemark.read.messages.message_columns import SCHEMA


def test_small_pieces_are_joined_and_large_ones_are_not_copied() -> None:
    """Neighbouring small pieces become one; a large buffer stays the caller's own memory."""
    large = np.arange(1 << 19, dtype=np.uint8)
    pieces = StreamPieces()
    for data in (b"a", b"b", pa.py_buffer(large), b"c", pa.py_buffer(b"d")):
        assert pieces.write(data) == len(data)
    first, second, third = pieces.joined()
    assert (first, third) == (b"ab", b"cd")
    assert np.shares_memory(np.frombuffer(second, np.uint8), large)


def test_no_pieces_are_joined_to_none() -> None:
    assert StreamPieces().joined() == []


def test_an_arrow_stream_carries_its_metadata(built: BuiltStore) -> None:
    """The facts are present even without messages."""
    with pa.ipc.open_stream(b"".join(arrow_stream([], {"tidemark.next_offset": "7"}))) as reader:
        assert reader.schema.metadata == {b"tidemark.next_offset": b"7"}
        assert reader.schema.remove_metadata() == SCHEMA
        assert reader.read_all().num_rows == 0


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_a_stream_has_its_form(built: BuiltStore, compression: str | None) -> None:
    """The dictionaries of its parts differ."""
    built.topic("payments")
    for number in range(40):
        built.append("orders", b"x" * 1000, {"TAGS": f"first{number % 3}"})
        built.append("payments", b"x" * 1000, {"TAGS": f"second{number % 5}"})
    parts = [part_of(built, "orders"), part_of(built, "payments")]
    form = TableForm(["tag", "body", "queue_offset"], dictionaries=True, compression=compression)
    data = b"".join(arrow_stream(parts, {"a": "b"}, form))
    table = pa.ipc.open_stream(data).read_all()
    assert table.schema.names == ["queue_offset", "tag", "body"]
    assert table.schema.metadata == {b"a": b"b"}
    assert table["tag"].to_pylist() == [f"first{n % 3}" for n in range(40)] + [f"second{n % 5}" for n in range(40)]
    assert table["body"].to_pylist() == [b"x" * 1000] * 80
    assert (len(data) < 10_000) is (compression is not None)
