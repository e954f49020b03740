"""JSON text in compiled loops: strings, numbers, base64. Each writes to out[to:] and returns the end.

The caller provides room: six bytes for each byte of a string, four for every three of base64.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.copy import copy_bytes

NOT_UTF8 = -1
_BLOCK = 32
_HEX = b"0123456789abcdef"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _short_escapes() -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Return the letter after the backslash for each byte; 0 if it has no short escape."""
    letters = np.zeros(128, np.uint8)
    for byte, letter in zip(b'"\\\b\f\n\r\t', b'"\\bfnrt', strict=True):
        letters[byte] = letter
    return letters


_ESCAPES = _short_escapes()


@compiled(inline="always")
def _is_plain(byte):  # type: ignore[no-untyped-def]
    return 0x20 <= byte < 0x80 and byte not in (0x22, 0x5C)


@compiled
def _plain_end(buffer, at, end):  # type: ignore[no-untyped-def]
    """Return the first position at or after *at* of a byte that needs an escape or is not ASCII."""
    while at + _BLOCK <= end:
        strange = False
        for i in range(_BLOCK):  # without a break, so that it compiles to a few vector instructions
            strange |= not _is_plain(buffer[at + i])
        if strange:
            break
        at += _BLOCK
    while at < end and _is_plain(buffer[at]):
        at += 1
    return at


@compiled(inline="always")
def _continues(buffer, at, end, low, high):  # type: ignore[no-untyped-def]
    return at < end and low <= buffer[at] <= high


@compiled
def _sequence_length(buffer, at, end):  # type: ignore[no-untyped-def]
    """Return the length of the multi-byte UTF-8 sequence at *at*; 0 if it is ill-formed (Unicode, table 3-7)."""
    lead = buffer[at]
    if 0xC2 <= lead <= 0xDF:
        return 2 if _continues(buffer, at + 1, end, 0x80, 0xBF) else 0
    if 0xE0 <= lead <= 0xEF:
        low = 0xA0 if lead == 0xE0 else 0x80
        high = 0x9F if lead == 0xED else 0xBF
        if _continues(buffer, at + 1, end, low, high) and _continues(buffer, at + 2, end, 0x80, 0xBF):
            return 3
        return 0
    if 0xF0 <= lead <= 0xF4:
        low = 0x90 if lead == 0xF0 else 0x80
        high = 0x8F if lead == 0xF4 else 0xBF
        if (
            _continues(buffer, at + 1, end, low, high)
            and _continues(buffer, at + 2, end, 0x80, 0xBF)
            and _continues(buffer, at + 3, end, 0x80, 0xBF)
        ):
            return 4
    return 0


@compiled
def is_utf8(buffer, at, length):  # type: ignore[no-untyped-def]
    """Return True if buffer[at:at+length] is UTF-8, as strictly as Python."""
    end = at + length
    while at < end:
        if buffer[at] < 0x80:
            at += 1
            continue
        size = _sequence_length(buffer, at, end)
        if size == 0:
            return False
        at += size
    return True


@compiled
def put_string(buffer, at, length, out, to):  # type: ignore[no-untyped-def]
    """Write buffer[at:at+length] as a JSON string with quotes; return NOT_UTF8 if it is invalid."""
    end = at + length
    out[to] = 0x22
    to += 1
    while at < end:
        plain_end = _plain_end(buffer, at, end)
        copy_bytes(buffer, at, plain_end - at, out, to)
        to += plain_end - at
        at = plain_end
        if at == end:
            break
        byte = buffer[at]
        if byte >= 0x80:
            size = _sequence_length(buffer, at, end)
            if size == 0:
                return NOT_UTF8
            for i in range(size):
                out[to + i] = buffer[at + i]
            to += size
            at += size
            continue
        out[to] = 0x5C
        letter = _ESCAPES[byte]
        if letter:
            out[to + 1] = letter
            to += 2
        else:
            out[to + 1], out[to + 2], out[to + 3] = 0x75, 0x30, 0x30  # u00
            out[to + 4], out[to + 5] = _HEX[byte >> 4], _HEX[byte & 15]
            to += 6
        at += 1
    out[to] = 0x22
    return to + 1


@compiled
def put_base64(buffer, at, length, out, to):  # type: ignore[no-untyped-def]
    """Write buffer[at:at+length] in base64 with padding and quotes."""
    out[to] = 0x22
    to += 1
    whole_end = at + length - length % 3
    while at < whole_end:
        bits = np.uint32(buffer[at]) << np.uint32(16) | np.uint32(buffer[at + 1]) << np.uint32(8) | buffer[at + 2]
        out[to] = _BASE64[(bits >> 18) & 63]
        out[to + 1] = _BASE64[(bits >> 12) & 63]
        out[to + 2] = _BASE64[(bits >> 6) & 63]
        out[to + 3] = _BASE64[bits & 63]
        at += 3
        to += 4
    left = length % 3
    if left:
        bits = np.uint32(buffer[at]) << np.uint32(16)
        if left == 2:
            bits |= np.uint32(buffer[at + 1]) << np.uint32(8)
        out[to] = _BASE64[(bits >> 18) & 63]
        out[to + 1] = _BASE64[(bits >> 12) & 63]
        out[to + 2] = _BASE64[(bits >> 6) & 63] if left == 2 else 0x3D
        out[to + 3] = 0x3D
        to += 4
    out[to] = 0x22
    return to + 1


@compiled
def put_number(value, out, to):  # type: ignore[no-untyped-def]
    """Write a signed 64-bit integer in decimal."""
    left = np.uint64(value)
    if value < 0:
        out[to] = 0x2D
        to += 1
        left = np.uint64(0) - left
    digits = 1
    rest = left // np.uint64(10)
    while rest > 0:
        digits += 1
        rest //= np.uint64(10)
    for i in range(to + digits - 1, to - 1, -1):
        out[i] = np.uint8(48) + np.uint8(left % np.uint64(10))
        left //= np.uint64(10)
    return to + digits
