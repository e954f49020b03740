"""Following a chain of the key index for paging, in a compiled loop. Twin: `tidemark.format.key_chain`."""

from __future__ import annotations

import numpy as np

from tidemark.format.kernels.compiled import compiled
from tidemark.format.kernels.integers import get_i4


@compiled
def oldest_entries(slots, entries, key_hash, begin_timestamp, least_ms, after, below, ring):  # type: ignore[no-untyped-def]
    """Collect the least physical offsets of *key_hash* within (after, below), and return how many the chain has there.

    A chain leads from new to old, so the last `ring.size` hits are kept: hit number i is stored at ring[i % ring.size].
    The walk stops unless numbers descend, because the slot may change concurrently.
    """
    n = 0
    capacity = entries.size // 20
    number = get_i4(slots, 4 * (key_hash % (slots.size // 4)))
    while 0 < number < capacity:
        at = 20 * number
        if get_i4(entries, at) == key_hash:
            physical_offset = (get_i4(entries, at + 4) << 32) | (get_i4(entries, at + 8) & 0xFFFFFFFF)
            timestamp = begin_timestamp + np.int64(get_i4(entries, at + 12)) * 1000
            if after < physical_offset < below and timestamp + 1000 > least_ms:
                ring[n % ring.size] = physical_offset
                n += 1
        previous = get_i4(entries, at + 16)
        if previous >= number:
            break
        number = previous
    return n
