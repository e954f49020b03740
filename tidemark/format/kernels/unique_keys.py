"""Hashes of unique keys in compiled loops. Twin: `tidemark.format.unique_keys`."""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled

PRIME = 0x9E3779B97F4A7C15
WORD_SIZE = 8
SHIFT = 29


@compiled(inline="always")
def _hash(buffer, at, length):  # type: ignore[no-untyped-def]
    value = np.uint64(length)
    end = at + length
    for start in range(at, end, WORD_SIZE):
        word = np.uint64(0)
        for i in range(min(WORD_SIZE, end - start)):
            word |= np.uint64(buffer[start + i]) << np.uint64(8 * i)
        value = (value ^ word) * np.uint64(PRIME)
        value ^= value >> np.uint64(SHIFT)
    return value


@compiled
def hash_unique_keys(buffer, rows, hashes, physical_offsets):  # type: ignore[no-untyped-def]
    """Write hash and physical offset of every row that has a unique key, and return their number, at most rows."""
    n = 0
    for i in range(rows.size):
        row = rows[i]
        if row.unique_key_length > 0:
            hashes[n] = _hash(buffer, row.unique_key_at, row.unique_key_length)
            physical_offsets[n] = row.physical_offset
            n += 1
    return n
