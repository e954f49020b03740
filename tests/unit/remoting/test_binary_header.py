"""The binary form of a header."""

from __future__ import annotations

import struct

import pytest

from tests.unit.remoting.frames import binary_header_bytes
from tidemark.errors import FrameIllegalError
from tidemark.remoting.binary_header import decode_binary_header, encode_binary_header
from tidemark.remoting.codes import Language

BYTES = binary_header_bytes(310, 9, 317, 7, 2, "é".encode(), (b"b", b"T"), (b"i", "ключ\x01v\x02".encode()), (b"", b""))
VALUES = (310, 2, 7, Language.GO, 317, "é", {"b": "T", "i": "ключ\x01v\x02", "": ""})


def reason_of(data: bytes) -> object:
    with pytest.raises(FrameIllegalError) as refused:
        decode_binary_header(data)
    return refused.value.facts["reason"]


def test_both_directions_follow_the_layout() -> None:
    assert decode_binary_header(BYTES) == VALUES
    assert decode_binary_header(memoryview(BYTES)) == VALUES
    assert encode_binary_header(*VALUES) == BYTES


def test_missing_remark_and_fields_have_length_zero() -> None:
    empty = binary_header_bytes(34, 0, 479, -1, 0, b"")
    assert decode_binary_header(empty) == (34, 0, -1, Language.JAVA, 479, "", {})
    assert encode_binary_header(34, 0, -1, Language.JAVA, 479, "", {}) == empty


@pytest.mark.parametrize("number", [14, 127, 128, 255])
def test_unknown_language_counts_as_other(number: int) -> None:
    assert decode_binary_header(binary_header_bytes(34, number, 479, 1, 0, b""))[3] is Language.OTHER


def test_header_cut_anywhere_or_with_more_bytes_is_refused() -> None:
    for end in range(len(BYTES)):
        assert reason_of(BYTES[:end]) == "BINARY_HEADER_ILLEGAL"
    assert reason_of(BYTES + b"\0") == "BINARY_HEADER_ILLEGAL"


@pytest.mark.parametrize("size", [-1, 0x7FFFFFFF, -0x80000000])
@pytest.mark.parametrize("at", [13, 17])  # the lengths of the remark, and of the fields after no remark
def test_length_that_does_not_fit_is_refused(at: int, size: int) -> None:
    data = bytearray(binary_header_bytes(34, 0, 479, 1, 0, b"", (b"a", b"1")))
    struct.pack_into(">i", data, at, size)
    assert reason_of(bytes(data)) == "BINARY_HEADER_ILLEGAL"


def test_negative_lengths_of_key_and_value_are_refused() -> None:
    data = bytearray(binary_header_bytes(34, 0, 479, 1, 0, b"", (b"a", b"1")))
    for at, number in ((21, struct.pack(">h", -1)), (24, struct.pack(">i", -1))):
        wrong = data.copy()
        wrong[at : at + len(number)] = number
        assert reason_of(bytes(wrong)) == "BINARY_HEADER_ILLEGAL"


def test_text_that_is_not_utf8_is_refused() -> None:
    assert reason_of(binary_header_bytes(34, 0, 479, 1, 0, b"\xff")) == "NOT_UTF8"
    assert reason_of(binary_header_bytes(34, 0, 479, 1, 0, b"", (b"a", b"\xc3"))) == "NOT_UTF8"


def test_values_that_do_not_fit_are_refused_before_they_are_written() -> None:
    for code, version, name in ((0x8000, 479, "a"), (200050, 479, "a"), (10, 0x8000, "a"), (10, 479, "a" * 0x8000)):
        with pytest.raises(ValueError, match="32"):
            encode_binary_header(code, 0, 1, Language.JAVA, version, "", {name: "v"})
