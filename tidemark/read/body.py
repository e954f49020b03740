"""Bodies as users get them: decompressed (spec 2.3), and in an encoding that JSON can hold."""

from __future__ import annotations

import binascii
import enum
import zlib
from typing import Any

import orjson
import pyarrow as pa

from tidemark.format.sys_flag import LZ4, UNTYPED, ZLIB, ZSTD, SysFlag

MAX_DECOMPRESSED_BYTES = 64 << 20


class BodyEncoding(enum.Enum):
    """How a body stands in JSON. Each message tells the one it really has: a body that does not fit becomes base64."""

    BASE64 = "base64"
    UTF8 = "utf8"  # text
    JSON = "json"  # the body is itself a JSON value and stands there as one
    AUTO = "auto"  # text where it is text


def is_compressed(sys_flag: int) -> bool:
    """Whether the body is stored compressed."""
    return bool(sys_flag & SysFlag.COMPRESSED)


def decompress(body: bytes, sys_flag: int) -> bytes | None:
    """The original of a compressed body; None when it cannot be had: unknown type, broken, or beyond 64 MiB."""
    kind = sys_flag & SysFlag.COMPRESSION_TYPE
    try:
        if kind in (ZLIB, UNTYPED):
            inflater = zlib.decompressobj()
            original = inflater.decompress(body, MAX_DECOMPRESSED_BYTES)
            return original if inflater.eof else None
        if kind in (LZ4, ZSTD):
            with pa.CompressedInputStream(pa.BufferReader(body), "lz4" if kind == LZ4 else "zstd") as stream:
                original = stream.read(MAX_DECOMPRESSED_BYTES + 1)
            return original if len(original) <= MAX_DECOMPRESSED_BYTES else None
    except (zlib.error, OSError):
        pass
    return None


def encode_body(body: bytes | memoryview, encoding: BodyEncoding) -> tuple[Any, str]:
    """(value for orjson, name of the encoding it has)."""
    if encoding is BodyEncoding.JSON:
        try:
            orjson.loads(body)
            return orjson.Fragment(bytes(body)), "json"
        except orjson.JSONDecodeError:
            pass
    if encoding is not BodyEncoding.BASE64:
        try:
            return str(body, "utf-8"), "utf8"
        except UnicodeDecodeError:
            pass
    return binascii.b2a_base64(body, newline=False).decode("ascii"), "base64"
