"""Big-endian integers, and decimal numbers as Java parses them, in compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from tidemark.format.kernels.bounds import require_within
from tidemark.format.kernels.compiled import compiled


def _place(context: Any, builder: Any, array_type: Any, array: Any, at: Any, bits: int) -> Any:
    """Return a pointer to an integer of *bits* bits at byte *at* of an array, without alignment."""
    from llvmlite import ir
    from numba.core import cgutils

    view = context.make_array(array_type)(context, builder, array)
    place = cgutils.gep_inbounds(builder, view.data, at)  # type: ignore[no-untyped-call]
    return builder.bitcast(place, ir.IntType(bits).as_pointer())


def _loader(bits: int) -> Any:
    result = types.Integer.from_bitwidth(bits, signed=False)

    def load(typingctx, array, at):  # type: ignore[no-untyped-def]
        """Return the unsigned big-endian integer at byte *at* of a uint8 array by one load and a byte swap.

        Eight single-byte loads would each test whether *at* is negative.
        """

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            place = _place(context, builder, signature.args[0], args[0], args[1], bits)
            return builder.bswap(builder.load(place, align=1))

        return result(array, types.intp), codegen

    return intrinsic(load)


def _storer(bits: int) -> Any:
    value_type = types.Integer.from_bitwidth(bits, signed=False)

    def store(typingctx, array, at, value):  # type: ignore[no-untyped-def]
        """Write the lowest bits of *value* big-endian at byte *at* of a uint8 array."""

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            place = _place(context, builder, signature.args[0], args[0], args[1], bits)
            builder.store(builder.bswap(args[2]), place, align=1)
            return context.get_dummy_value()

        return types.none(array, types.intp, value_type), codegen

    return intrinsic(store)


_load_2, _load_4, _load_8 = _loader(16), _loader(32), _loader(64)
_store_2, _store_4, _store_8 = _storer(16), _storer(32), _storer(64)


@compiled(inline="always")
def get_i2(buffer, at):  # type: ignore[no-untyped-def]
    """Return signed 16 bits as int64."""
    require_within(buffer, at, at + 2)
    return np.int64(np.int16(_load_2(buffer, at)))


@compiled(inline="always")
def get_u4(buffer, at):  # type: ignore[no-untyped-def]
    """Return unsigned 32 bits."""
    require_within(buffer, at, at + 4)
    return _load_4(buffer, at)


@compiled(inline="always")
def get_i4(buffer, at):  # type: ignore[no-untyped-def]
    """Return signed 32 bits as int64."""
    require_within(buffer, at, at + 4)
    return np.int64(np.int32(_load_4(buffer, at)))


@compiled(inline="always")
def get_u8(buffer, at):  # type: ignore[no-untyped-def]
    """Return unsigned 64 bits."""
    require_within(buffer, at, at + 8)
    return _load_8(buffer, at)


@compiled(inline="always")
def get_i8(buffer, at):  # type: ignore[no-untyped-def]
    """Return signed 64 bits."""
    require_within(buffer, at, at + 8)
    return np.int64(_load_8(buffer, at))


@compiled(inline="always")
def put_i2(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write the lowest 16 bits of *value*."""
    require_within(buffer, at, at + 2)
    _store_2(buffer, at, value)


@compiled(inline="always")
def put_i4(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write the lowest 32 bits of *value*."""
    require_within(buffer, at, at + 4)
    _store_4(buffer, at, value)


@compiled(inline="always")
def put_i8(buffer, at, value):  # type: ignore[no-untyped-def]
    """Write *value*."""
    require_within(buffer, at, at + 8)
    _store_8(buffer, at, value)


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
