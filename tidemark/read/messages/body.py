"""Bodies for users: decompressed (docs/format.md §2) and in an encoding for JSON."""

from __future__ import annotations

import binascii
import contextlib
import enum
from typing import Any

import orjson

from tidemark.format.compression import decompress
from tidemark.format.json_text import is_too_deep


class BodyEncoding(enum.Enum):
    """Encoding of a body in JSON. Each message states its actual encoding: a body that does not fit becomes base64."""

    BASE64 = "base64"
    UTF8 = "utf8"  # text
    JSON = "json"  # a JSON value, inlined unchanged; text if common parsers could not read it
    AUTO = "auto"  # text if it is valid UTF-8


class AnswerFullError(Exception):
    """The bodies exceed the limit of a response: request fewer messages. Never leaves the process."""


class BodyRoom:
    """Limit on the decompressed bodies of one response, because a few kilobytes can expand to gigabytes.

    limit_bytes       at least MAX_DECOMPRESSED_BYTES, so that one message always fits
    keep_rest_stored  bodies beyond the limit stay compressed: for a response that cannot have fewer messages
    """

    def __init__(self, limit_bytes: int, *, keep_rest_stored: bool = False) -> None:
        self._left = limit_bytes
        self._keep_rest_stored = keep_rest_stored

    def decompress(self, body: bytes, sys_flag: int) -> bytes | None:
        """Decompress like the function; None also for a body that stays compressed.

        Raises AnswerFullError at the limit.
        """
        original = decompress(body, sys_flag)
        if original is not None and len(original) > self._left and self._keep_rest_stored:
            return None
        self.take(0 if original is None else len(original))
        return original

    def take(self, size: int) -> None:
        """Reserve *size* bytes. Raises AnswerFullError if the limit is exceeded."""
        if size > self._left and not self._keep_rest_stored:
            raise AnswerFullError
        self._left -= size


def encode_body(body: bytes | memoryview, encoding: BodyEncoding) -> tuple[Any, str]:
    """Return a value for orjson and the name of its encoding."""
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
