"""Big-endian integers, and decimal numbers as Java parses them, in compiled loops."""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled


@compiled(inline="always")
def get_i2(buffer, at):  # type: ignore[no-untyped-def]
    """Signed 16 bits, as int64."""
    return np.int64(np.int16((np.uint16(buffer[at]) << 8) | np.uint16(buffer[at + 1])))


@compiled(inline="always")
def get_u4(buffer, at):  # type: ignore[no-untyped-def]
    """Unsigned 32 bits."""
    return (
        (np.uint32(buffer[at]) << np.uint32(24))
        | (np.uint32(buffer[at + 1]) << np.uint32(16))
        | (np.uint32(buffer[at + 2]) << np.uint32(8))
        | np.uint32(buffer[at + 3])
    )


@compiled(inline="always")
def get_i4(buffer, at):  # type: ignore[no-untyped-def]
    """Signed 32 bits, as int64."""
    return np.int64(np.int32(get_u4(buffer, at)))


@compiled(inline="always")
def get_i8(buffer, at):  # type: ignore[no-untyped-def]
    """Signed 64 bits."""
    return np.int64((np.uint64(get_u4(buffer, at)) << np.uint64(32)) | np.uint64(get_u4(buffer, at + 4)))


@compiled(inline="always")
def put_i2(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write the lowest 16 bits of *value*."""
    buffer[at] = (value >> 8) & 0xFF
    buffer[at + 1] = value & 0xFF


@compiled(inline="always")
def put_i4(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write the lowest 32 bits of *value*."""
    for i in range(4):
        buffer[at + i] = (value >> (24 - 8 * i)) & 0xFF


@compiled(inline="always")
def put_i8(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write *value*."""
    for i in range(8):
        buffer[at + i] = (value >> (56 - 8 * i)) & 0xFF


@compiled
def parse_decimal(buffer, at, length, greatest):  # type: ignore[no-untyped-def]
    """(is a number, value) as Integer.parseInt and its like: an optional sign, ASCII digits, at most *greatest*.

    At least -greatest - 1.
    """
    negative = False
    i = at
    end = at + length
    if length > 0 and (buffer[at] == 45 or buffer[at] == 43):
        negative = buffer[at] == 45
        i += 1
    if i == end:
        return False, np.int64(0)
    value = np.uint64(0)
    limit = np.uint64(greatest) + np.uint64(1 if negative else 0)
    while i < end:
        digit = buffer[i] - 48
        if digit < 0 or digit > 9:
            return False, np.int64(0)
        if value > (limit - np.uint64(digit)) // np.uint64(10):
            return False, np.int64(0)
        value = value * np.uint64(10) + np.uint64(digit)
        i += 1
    return True, -np.int64(value) if negative else np.int64(value)
