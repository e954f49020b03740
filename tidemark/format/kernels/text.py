"""Java's String.hashCode() over UTF-8 bytes, in compiled loops.

Malformed UTF-8 is decoded as in Java and Python: each maximal ill-formed part becomes one U+FFFD. A surrogate encoded
in UTF-8, which neither writes, becomes three in Python and one in Java; this follows Python.
"""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import get_u8

_NOT_ASCII = np.uint64(0x8080808080808080)
_POWERS = tuple(np.uint32(pow(31, i, 1 << 32)) for i in range(9))


@compiled(inline="always")
def _is_continuation(buffer, at, end, low, high):  # type: ignore[no-untyped-def]
    return at < end and low <= buffer[at] <= high


@compiled
def _next_code_point(buffer, at, end):  # type: ignore[no-untyped-def]
    """Return the code point at *at*, a byte of 0x80 or more, and the position after it."""
    lead = buffer[at]
    if 0xC2 <= lead <= 0xDF:
        if _is_continuation(buffer, at + 1, end, 0x80, 0xBF):
            return (np.int64(lead & 0x1F) << 6) | np.int64(buffer[at + 1] & 0x3F), at + 2
        return np.int64(0xFFFD), at + 1
    if 0xE0 <= lead <= 0xEF:
        low = 0xA0 if lead == 0xE0 else 0x80
        high = 0x9F if lead == 0xED else 0xBF
        if not _is_continuation(buffer, at + 1, end, low, high):
            return np.int64(0xFFFD), at + 1
        if not _is_continuation(buffer, at + 2, end, 0x80, 0xBF):
            return np.int64(0xFFFD), at + 2
        point = (np.int64(lead & 0x0F) << 12) | (np.int64(buffer[at + 1] & 0x3F) << 6) | np.int64(buffer[at + 2] & 0x3F)
        return point, at + 3
    if 0xF0 <= lead <= 0xF4:
        low = 0x90 if lead == 0xF0 else 0x80
        high = 0x8F if lead == 0xF4 else 0xBF
        if not _is_continuation(buffer, at + 1, end, low, high):
            return np.int64(0xFFFD), at + 1
        if not _is_continuation(buffer, at + 2, end, 0x80, 0xBF):
            return np.int64(0xFFFD), at + 2
        if not _is_continuation(buffer, at + 3, end, 0x80, 0xBF):
            return np.int64(0xFFFD), at + 3
        point = (
            (np.int64(lead & 0x07) << 18)
            | (np.int64(buffer[at + 1] & 0x3F) << 12)
            | (np.int64(buffer[at + 2] & 0x3F) << 6)
            | np.int64(buffer[at + 3] & 0x3F)
        )
        return point, at + 4
    return np.int64(0xFFFD), at + 1


@compiled(inline="always")
def _sum_of_ascii(eight):  # type: ignore[no-untyped-def]
    """Return the contribution of eight characters to a hash, the first in the highest byte, by independent products."""
    total = np.uint32(0)
    for i in range(8):
        total += np.uint32((eight >> np.uint64(8 * i)) & np.uint64(0xFF)) * _POWERS[i]
    return total


@compiled
def text_hash(buffer, at, length, seed):  # type: ignore[no-untyped-def]
    """Return hashCode of buffer[at:at+length], continued from *seed* (uint32, the hash of the preceding text)."""
    value = np.uint32(seed)
    prime = np.uint32(31)
    end = at + length
    i = at
    while i < end:
        if i + 8 <= end:
            eight = get_u8(buffer, i)
            if eight & _NOT_ASCII == 0:
                value = np.uint32(value * _POWERS[8] + _sum_of_ascii(eight))
                i += 8
                continue
        byte = buffer[i]
        if byte < 0x80:
            value = np.uint32(value * prime + np.uint32(byte))
            i += 1
            continue
        point, i = _next_code_point(buffer, i, end)
        if point >= 0x10000:
            point -= 0x10000
            value = np.uint32(value * prime + np.uint32(0xD800 + (point >> 10)))
            value = np.uint32(value * prime + np.uint32(0xDC00 + (point & 0x3FF)))
        else:
            value = np.uint32(value * prime + np.uint32(point))
    return value
