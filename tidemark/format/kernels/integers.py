"""Big-endian integers, and decimal numbers as Java parses them, in compiled loops."""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.bounds import require_within
from tidemark.format.kernels.compiled import compiled, machine


@compiled(inline="always")
def get_i2(buffer, at):  # type: ignore[no-untyped-def]
    """Return signed 16 bits as int64."""
    require_within(buffer, at, at + 2)
    return np.int64(np.int16(machine.load_2(buffer, at)))


@compiled(inline="always")
def get_u4(buffer, at):  # type: ignore[no-untyped-def]
    """Return unsigned 32 bits."""
    require_within(buffer, at, at + 4)
    return machine.load_4(buffer, at)


@compiled(inline="always")
def get_i4(buffer, at):  # type: ignore[no-untyped-def]
    """Return signed 32 bits as int64."""
    require_within(buffer, at, at + 4)
    return np.int64(np.int32(machine.load_4(buffer, at)))


@compiled(inline="always")
def get_u8(buffer, at):  # type: ignore[no-untyped-def]
    """Return unsigned 64 bits."""
    require_within(buffer, at, at + 8)
    return machine.load_8(buffer, at)


@compiled(inline="always")
def get_i8(buffer, at):  # type: ignore[no-untyped-def]
    """Return signed 64 bits."""
    require_within(buffer, at, at + 8)
    return np.int64(machine.load_8(buffer, at))


@compiled(inline="always")
def put_i2(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write the lowest 16 bits of *value*."""
    require_within(buffer, at, at + 2)
    machine.store_2(buffer, at, value)


@compiled(inline="always")
def put_i4(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write the lowest 32 bits of *value*."""
    require_within(buffer, at, at + 4)
    machine.store_4(buffer, at, value)


@compiled(inline="always")
def put_i8(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write *value*."""
    require_within(buffer, at, at + 8)
    machine.store_8(buffer, at, value)


@compiled
def parse_decimal(buffer, at, length, greatest):  # type: ignore[no-untyped-def]
    """Parse like Integer.parseInt: an optional sign and ASCII digits, between -greatest - 1 and *greatest*.

    Returns (is a number, value).
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
