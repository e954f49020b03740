"""Copying and comparing bytes inside compiled loops: numba's own slice assignment moves 3 GB/s, memcpy far more."""

from __future__ import annotations

from numba import types

from tidemark.format.kernels.bounds import require_within
from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.crc import address

_memcpy = types.ExternalFunction("memcpy", types.uintp(types.uintp, types.uintp, types.uintp))


@compiled
def copy_bytes(source, at, length, target, to):  # type: ignore[no-untyped-def]
    """target[to : to + length] = source[at : at + length]; the two do not overlap."""
    if length > 0:
        require_within(source, at, at + length)
        require_within(target, to, to + length)
        start = address(source) + types.uintp(at)  # type: ignore[call-arg]
        _memcpy(address(target) + types.uintp(to), start, types.uintp(length))


@compiled
def is_same(buffer, one, other, length):  # type: ignore[no-untyped-def]
    """Whether the *length* bytes at *one* and at *other* are the same; few of them."""
    for i in range(length):
        if buffer[one + i] != buffer[other + i]:
            return False
    return True
