"""Hashes of unique keys, by which a writer looks for an earlier batch in the log's tail. They are in no file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.kernels import unique_keys as kernel

Hashes = NDArray[np.uint64]

_64_BITS = (1 << 64) - 1


def hash_unique_key(key: bytes) -> int:
    """Return the 64-bit hash of one key."""
    value = len(key)
    for start in range(0, len(key), kernel.WORD_SIZE):
        word = int.from_bytes(key[start : start + kernel.WORD_SIZE], "little")
        value = ((value ^ word) * kernel.PRIME) & _64_BITS
        value ^= value >> kernel.SHIFT
    return value


def hash_unique_keys(buffer: U8Array, rows: RequestArray) -> tuple[Hashes, NDArray[np.int64]]:
    """Return the hashes and physical offsets of the rows that have a unique key, in order."""
    hashes, physical_offsets = np.empty(rows.size, np.uint64), np.empty(rows.size, np.int64)
    count = kernel.hash_unique_keys(buffer, rows, hashes, physical_offsets)
    return hashes[:count], physical_offsets[:count]
