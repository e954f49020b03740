"""Bodies as users get them: decompressed (docs/format.md §2), and in an encoding that JSON can hold."""

from __future__ import annotations

import binascii
import contextlib
import enum
import zlib
from typing import Any

import orjson
import pyarrow as pa

from tidemark.format.json_text import is_too_deep
from tidemark.format.sys_flag import LZ4, UNTYPED, ZLIB, ZSTD, SysFlag

MAX_DECOMPRESSED_BYTES = 64 << 20


class BodyEncoding(enum.Enum):
    """How a body stands in JSON. Each message tells the one it really has: a body that does not fit becomes base64."""

    BASE64 = "base64"
    UTF8 = "utf8"  # text
    JSON = "json"  # the body is itself a JSON value, inlined as it is; text where common readers could not read it
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


class AnswerFullError(Exception):
    """The bodies take more than an answer may have: ask for fewer messages. Never leaves the process."""


class BodyRoom:
    """The bytes that bodies of one answer may take, decompressed: a few kilobytes may be gigabytes then.

    limit_bytes       at least MAX_DECOMPRESSED_BYTES: then one message always fits
    keep_rest_stored  bodies beyond it stay as they are stored: for an answer that cannot have fewer messages
    """

    def __init__(self, limit_bytes: int, *, keep_rest_stored: bool = False) -> None:
        self._left = limit_bytes
        self._keep_rest_stored = keep_rest_stored

    def decompress(self, body: bytes, sys_flag: int) -> bytes | None:
        """As the function; also None for what stays stored. AnswerFullError where there is no more room."""
        original = decompress(body, sys_flag)
        if original is not None and len(original) > self._left and self._keep_rest_stored:
            return None
        self.take(0 if original is None else len(original))
        return original

    def take(self, size: int) -> None:
        """Room for so many bytes. AnswerFullError where there is no more."""
        if size > self._left and not self._keep_rest_stored:
            raise AnswerFullError
        self._left -= size


def encode_body(body: bytes | memoryview, encoding: BodyEncoding) -> tuple[Any, str]:
    """(value for orjson, name of the encoding it has)."""
    if encoding is BodyEncoding.JSON:
        text = bytes(body)
        with contextlib.suppress(orjson.JSONDecodeError):
            orjson.loads(text)
            if not is_too_deep(text):
                return orjson.Fragment(text), "json"
    if encoding is not BodyEncoding.BASE64:
        try:
            return str(body, "utf-8"), "utf8"
        except UnicodeDecodeError:
            pass
    return binascii.b2a_base64(body, newline=False).decode("ascii"), "base64"
