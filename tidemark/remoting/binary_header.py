"""The binary form of a frame's header, which RocketMQ calls ROCKETMQ. All numbers are big-endian.

code int16, language byte, version int16, opaque int32, flag int32
remark: length int32, bytes
fields: length int32, then for each field: key length int16, key, value length int32, value
"""

from __future__ import annotations

import struct

from tidemark.errors import FrameIllegalError
from tidemark.remoting.codes import LANGUAGE_BY_NUMBER, Language
from tidemark.remoting.faults import FrameFault, frame_illegal
from tidemark.remoting.json_header import Header

_HEAD = struct.Struct(">hBhiii")  # up to the remark's length
_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_MAX_KEY_SIZE_BYTES = 0x7FFF


def decode_binary_header(data: bytes | memoryview) -> Header:
    """Decode a header, which must fill *data*.

    Raises:
        FrameIllegalError: a length does not fit, or a text is no UTF-8.
    """
    raw = bytes(data)  # a header is small, and each text needs bytes
    try:
        code, language, version, opaque, flag, size = _HEAD.unpack_from(raw)
        remark, at = _text(raw, _HEAD.size, size)
        (size,) = _INT32.unpack_from(raw, at)
        at += _INT32.size
        if at + size != len(raw):
            raise _size_illegal(at - _INT32.size, size)
        fields = {}
        while at < len(raw):
            (size,) = _INT16.unpack_from(raw, at)
            key, at = _text(raw, at + _INT16.size, size)
            (size,) = _INT32.unpack_from(raw, at)
            fields[key], at = _text(raw, at + _INT32.size, size)
    except struct.error:
        raise frame_illegal(FrameFault.BINARY_HEADER_ILLEGAL, "the binary header ends within a number") from None
    except UnicodeDecodeError:
        raise frame_illegal(FrameFault.NOT_UTF8, "a text of the binary header is not UTF-8") from None
    return code, flag, opaque, LANGUAGE_BY_NUMBER.get(language, Language.OTHER), version, remark, fields


def encode_binary_header(
    code: int, flag: int, opaque: int, language: Language, version: int, remark: str, fields: dict[str, str]
) -> bytes:
    """Encode a header.

    Raises:
        ValueError: code or version does not fit into 16 bits, or a field's name into 32,767 bytes.
    """
    if not (-0x8000 <= code <= 0x7FFF and -0x8000 <= version <= 0x7FFF):
        raise ValueError(f"code {code} and version {version} of a binary header must be from -32768 to 32767")
    text = remark.encode()
    parts = [_HEAD.pack(code, language, version, opaque, flag, len(text)), text, b""]
    for name, value in fields.items():
        key, text = name.encode(), value.encode()
        if len(key) > _MAX_KEY_SIZE_BYTES:
            raise ValueError(f"the name of a field has {len(key)} bytes; at most {_MAX_KEY_SIZE_BYTES} are allowed")
        parts += (_INT16.pack(len(key)), key, _INT32.pack(len(text)), text)
    parts[2] = _INT32.pack(sum(map(len, parts[3:])))
    return b"".join(parts)


def _text(raw: bytes, at: int, size: int) -> tuple[str, int]:
    """Return the text of *size* bytes at *at*, and its end."""
    end = at + size
    if size < 0 or end > len(raw):
        raise _size_illegal(at, size)
    return raw[at:end].decode(), end


def _size_illegal(at: int, size: int) -> FrameIllegalError:
    message = f"byte {at} of the binary header gives a length of {size}, which does not fit"
    return frame_illegal(FrameFault.BINARY_HEADER_ILLEGAL, message, header_at=at)
