"""Frames ⇄ bytes.

length int32   bytes after this number
mark   uint32  serialisation of the header (high byte) and the header's length (low 24 bits)
header         JSON or binary
body           the rest
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tidemark.remoting.binary_header import decode_binary_header, encode_binary_header
from tidemark.remoting.codes import Serialization
from tidemark.remoting.faults import FrameFault, frame_illegal
from tidemark.remoting.frame import Buffer, Frame
from tidemark.remoting.json_header import decode_json_header, encode_json_header

MAX_FRAME_SIZE_BYTES = 16_777_216  # the largest value of `length`

HEAD = struct.Struct(">iI")
_LENGTH = struct.Struct(">i")
_MAX_HEADER_SIZE_BYTES = 0xFFFFFF
_JSON, _ROCKETMQ = Serialization.JSON, Serialization.ROCKETMQ


def split(buffer: Buffer, *, limit: int = MAX_FRAME_SIZE_BYTES) -> tuple[list[tuple[int, int]], int]:
    """Find the whole frames at the start of *buffer*. No byte is copied.

    Args:
        limit: the largest allowed length of a frame, without the four bytes of the length itself.

    Returns:
        start and end of each whole frame, its length included, and the end of the last one.

    Raises:
        FrameIllegalError: a frame is too long, or its header is longer than the frame. Fact `at` is its start: whole
            frames before it are in ``buffer[:at]``. It is raised as soon as the first eight bytes show it.
    """
    frames: list[tuple[int, int]] = []
    at, size = 0, len(buffer)
    while size - at >= HEAD.size:
        length, mark = HEAD.unpack_from(buffer, at)
        header_size = mark & _MAX_HEADER_SIZE_BYTES
        if not header_size + 4 <= length <= limit or mark >> 24 > _ROCKETMQ:
            _check_head(length, mark, limit, at)
        end = at + 4 + length
        if end > size:
            return frames, at
        frames.append((at, end))
        at = end
    if size - at >= _LENGTH.size:
        _check_head(_LENGTH.unpack_from(buffer, at)[0], 0, limit, at)
    return frames, at


def decode(data: bytes | memoryview) -> Frame:
    """Decode one whole frame, its length included. The body is a part of *data*: of a memoryview without a copy.

    Raises:
        FrameIllegalError: *data* is no legal frame; fact `reason` is a `FrameFault`.
    """
    size = len(data)
    if size < HEAD.size:
        raise frame_illegal(FrameFault.LENGTH_DIFFERS, f"a frame has at least 8 bytes, not {size}")
    length, mark = HEAD.unpack_from(data)
    header_end = 8 + (mark & _MAX_HEADER_SIZE_BYTES)
    if length != size - 4 or header_end > size:
        _check_head(length, mark, length, 0)
        raise frame_illegal(FrameFault.LENGTH_DIFFERS, f"a frame of length {length} has {size - 4} bytes after it")
    form = mark >> 24
    if form == _JSON:
        return Frame(*decode_json_header(data[8:header_end]), data[header_end:], _JSON)
    _check_head(length, mark, length, 0)
    return Frame(*decode_binary_header(data[8:header_end]), data[header_end:], _ROCKETMQ)


def encode(frame: Frame) -> bytes:
    """Encode *frame* in its own serialisation.

    Raises:
        ValueError: the header has more than 16,777,215 bytes, or a value does not fit into a binary header.
    """
    return b"".join((_encode_head(frame, len(frame.body)), frame.body))


def encode_parts(frame: Frame, body: Iterable[Buffer]) -> list[Buffer]:
    """Return the encoded head of *frame* and the buffers of *body*, which are not joined. `frame.body` is not used."""
    parts: list[Buffer] = [b"", *body]
    parts[0] = _encode_head(frame, sum(map(len, parts)))
    return parts


def _encode_head(frame: Frame, body_size: int) -> bytes:
    encode_header = encode_json_header if frame.serialization is _JSON else encode_binary_header
    header = encode_header(
        frame.code, frame.flag, frame.opaque, frame.language, frame.version, frame.remark, frame.fields
    )
    size = len(header)
    if size > _MAX_HEADER_SIZE_BYTES:
        raise ValueError(f"the header has {size} bytes; at most {_MAX_HEADER_SIZE_BYTES} are allowed")
    return HEAD.pack(4 + size + body_size, frame.serialization << 24 | size) + header


def _check_head(length: int, mark: int, limit: int, at: int) -> None:
    """Raise FrameIllegalError if the frame at *at* is illegal by its first numbers."""
    if length < 4:
        raise frame_illegal(FrameFault.LENGTH_TOO_SMALL, f"a frame's length is {length}, less than 4", at=at)
    if length > limit:
        message = f"a frame's length is {length}; at most {limit} is allowed"
        raise frame_illegal(FrameFault.LENGTH_EXCEEDED, message, at=at, limit=limit)
    if mark >> 24 > _ROCKETMQ:
        message = f"a frame's serialisation is {mark >> 24}; 0 (JSON) and 1 (ROCKETMQ) are allowed"
        raise frame_illegal(FrameFault.SERIALIZATION_UNKNOWN, message, at=at)
    if (header_size := mark & _MAX_HEADER_SIZE_BYTES) > length - 4:
        message = f"a frame's header has {header_size} bytes, its length allows {length - 4}"
        raise frame_illegal(FrameFault.HEADER_EXCEEDS_FRAME, message, at=at)
