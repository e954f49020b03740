"""Frames ⇄ bytes."""

from __future__ import annotations

import struct

import pytest

from tests.unit.remoting.frames import frame_bytes
from tidemark.errors import FrameIllegalError
from tidemark.remoting import Frame, Language, Serialization, decode, encode, encode_parts, request, split
from tidemark.remoting.frame import Buffer
from tidemark.remoting.framing import MAX_FRAME_SIZE_BYTES

HEADER = b'{"code":105,"opaque":3}'
WHOLE = frame_bytes(HEADER, b"body")


def fault_of(error: pytest.ExceptionInfo[FrameIllegalError]) -> object:
    return error.value.facts["reason"]


def test_split_finds_every_whole_frame_and_leaves_the_rest() -> None:
    size = len(WHOLE)
    for cut in range(size):
        frames, used = split(memoryview(WHOLE * 2 + WHOLE[:cut]))
        assert frames == [(0, size), (size, 2 * size)]
        assert used == 2 * size


def test_split_of_fewer_than_four_bytes_waits() -> None:
    for length in range(4):
        assert split(b"\xff" * length) == ([], 0)


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (struct.pack(">i", MAX_FRAME_SIZE_BYTES + 1), "LENGTH_EXCEEDED"),
        (b"GET / HTTP/1.1\r\n", "LENGTH_EXCEEDED"),
        (struct.pack(">i", -1), "LENGTH_TOO_SMALL"),
        (struct.pack(">i", 3), "LENGTH_TOO_SMALL"),
        (struct.pack(">iI", 10, 7), "HEADER_EXCEEDS_FRAME"),
        (struct.pack(">iI", 10, 2 << 24), "SERIALIZATION_UNKNOWN"),
    ],
)
def test_illegal_start_is_refused_at_its_place(start: bytes, reason: str) -> None:
    for before in (b"", WHOLE, WHOLE * 3):
        with pytest.raises(FrameIllegalError) as refused:
            split(before + start)
        assert (fault_of(refused), refused.value.facts["at"]) == (reason, len(before))
        assert split(before) == ([(at, at + len(WHOLE)) for at in range(0, len(before), len(WHOLE))], len(before))


def test_limit_counts_the_bytes_after_the_length() -> None:
    length = len(WHOLE) - 4
    assert split(WHOLE, limit=length)[1] == len(WHOLE)
    with pytest.raises(FrameIllegalError) as refused:
        split(WHOLE, limit=length - 1)
    assert refused.value.facts["limit"] == length - 1


def test_body_of_a_memoryview_is_not_copied() -> None:
    buffer = bytearray(WHOLE)
    body = decode(memoryview(buffer)).body
    buffer[-1] = ord("!")
    assert bytes(body) == b"bod!"


def test_absent_body_is_empty() -> None:
    assert decode(frame_bytes(HEADER)).body == b""


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "LENGTH_DIFFERS"),
        (WHOLE[:7], "LENGTH_DIFFERS"),
        (WHOLE + b"x", "LENGTH_DIFFERS"),
        (WHOLE[:-1], "LENGTH_DIFFERS"),
        (struct.pack(">iI", 4, 1), "HEADER_EXCEEDS_FRAME"),
        (struct.pack(">iI", 4, 0), "NOT_JSON"),
        (struct.pack(">iI", -5, 0), "LENGTH_TOO_SMALL"),
        (struct.pack(">iI", 4, 0xFF << 24), "SERIALIZATION_UNKNOWN"),
        (struct.pack(">iI", 4, 1 << 24), "BINARY_HEADER_ILLEGAL"),
    ],
)
def test_decode_refuses_bytes_that_are_no_frame(data: bytes, reason: str) -> None:
    with pytest.raises(FrameIllegalError) as refused:
        decode(data)
    assert fault_of(refused) == reason


def test_encoded_frame_has_the_lengths_of_its_parts() -> None:
    wire = encode(request(105, {"topic": "T"}, b"body", opaque=3))
    length, mark = struct.unpack_from(">iI", wire)
    assert length == len(wire) - 4
    assert mark >> 24 == 0
    assert wire[8 + (mark & 0xFFFFFF) :] == b"body"
    binary = encode(Frame(105, 0, 3, Language.GO, 317, serialization=Serialization.ROCKETMQ))
    assert binary[4] == 1


def test_parts_are_the_frame_without_joining_the_buffers() -> None:
    frame = request(11, {"topic": "T"}, opaque=3)
    body: list[Buffer] = [b"one", memoryview(b"two"), bytearray(b"three")]
    parts = encode_parts(frame, iter(body))
    assert all(part is given for part, given in zip(parts[1:], body, strict=True))
    frame.body = b"onetwothree"
    assert b"".join(parts) == encode(frame)


def test_header_of_more_than_24_bits_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 16777215"):
        encode(request(10, {"i": "x" * (1 << 24)}, opaque=1))
