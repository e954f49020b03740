"""Units of both kinds of queues: encoding of many, cut ends, live units."""

from __future__ import annotations

import struct

from tidemark.format import batch_consume_queue, consume_queue


def test_columns_are_encoded_as_units_in_order() -> None:
    """The bytes are those of struct, contiguous."""
    rows = [(0, 91, 0), (1 << 40, 2**31 - 1, -(2**31)), (5, 6, 2**62)]
    places, sizes, codes = zip(*rows, strict=True)
    data = consume_queue.encode_units(physical_offset=places, message_size=sizes, tags_code=codes)
    assert data == b"".join(struct.pack(">qiq", *row) for row in rows)
    assert consume_queue.decode_units(data + b"cut off").tolist() == rows


def test_empty_columns_are_encoded_as_no_bytes() -> None:
    assert consume_queue.encode_units(physical_offset=[], message_size=[], tags_code=[]) == b""
    assert len(consume_queue.decode_units(b"")) == 0


def test_live_units_are_neither_empty_nor_pre_blank() -> None:
    """A live unit has an offset of at least 0 and a positive size, and is not the filler."""
    rows = [(0, 1, 0), (0, 0, 0), (-1, 5, 0), (7, -5, 0), (0, 0x7FFFFFFF, 0), (0, 0x7FFFFFFE, 0)]
    units = consume_queue.decode_units(b"".join(struct.pack(">qiq", *row) for row in rows))
    assert consume_queue.is_live(units).tolist() == [True, False, False, False, False, True]


def test_batch_columns_are_encoded_as_units_in_order() -> None:
    """A unit has 46 bytes, with -1 and 0 after the record's fields."""
    rows = [(8192, 251, 0, 17, 30, 2), (1 << 40, 2**31 - 1, -5, 2**60, 2**50, 32767)]
    columns = dict(
        zip(
            ("physical_offset", "message_size", "tags_code", "store_timestamp", "base_offset", "batch_size"),
            zip(*rows, strict=True),
            strict=True,
        )
    )
    data = batch_consume_queue.encode_units(**columns)
    assert data == b"".join(struct.pack(">qiqqqhii", *row, -1, 0) for row in rows)
    assert batch_consume_queue.decode_units(data + bytes(45)).tolist() == [(*row, -1, 0) for row in rows]


def test_live_batch_units_pass_all_four_tests() -> None:
    """The fields are those of docs/format.md §5."""
    rows = [(0, 1, 0, 0, 0, 1), (-1, 1, 0, 0, 0, 1), (0, 0, 0, 0, 0, 1), (0, 1, 0, 0, -1, 1), (0, 1, 0, 0, 0, 0)]
    units = batch_consume_queue.decode_units(b"".join(struct.pack(">qiqqqhii", *row, -1, 0) for row in rows))
    assert batch_consume_queue.is_live(units).tolist() == [True, False, False, False, False]
