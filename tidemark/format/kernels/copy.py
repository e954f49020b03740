"""Copying and comparing of bytes in compiled loops: numba's slice assignment moves 3 GB/s, memmove is much faster."""

from __future__ import annotations

from tidemark.format.kernels.bounds import require_within
from tidemark.format.kernels.compiled import compiled, machine
from tidemark.format.kernels.integers import get_u8


@compiled
def copy_bytes(source, at, length, target, to):  # type: ignore[no-untyped-def]
    """Copy source[at : at + length] to target[to : to + length]; they may overlap."""
    if length > 0:
        require_within(source, at, at + length)
        require_within(target, to, to + length)
        machine.copy(source, at, length, target, to)


@compiled
def is_same(buffer, one, other, length):  # type: ignore[no-untyped-def]
    """Return True if the *length* bytes at *one* and at *other* are equal; for small lengths."""
    whole = length // 8 * 8
    for i in range(0, whole, 8):
        if get_u8(buffer, one + i) != get_u8(buffer, other + i):
            return False
    for i in range(whole, length):
        if buffer[one + i] != buffer[other + i]:
            return False
    return True
