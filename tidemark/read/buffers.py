"""Large buffers, used again and again: a page that the process touches first costs more than reading it full."""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from tidemark.format.dispatch_request import U8Array

LEAST_BYTES = 128 << 10  # below it the allocator does as well
GREATEST_BYTES = 8 << 20
KEPT = 6
LITTLE_BYTES, LITTLE_KEPT = 1 << 20, 12


class BufferPool:
    """Lends buffers and takes them back when nobody refers to them any more. Safe for several threads.

    Keeps at most *kept* buffers of *greatest_bytes*, of which only what was ever filled is in memory; what is lent
    beyond that, and what is larger, goes back to the system.
    """

    def __init__(self, *, kept: int = KEPT, greatest_bytes: int = GREATEST_BYTES) -> None:
        self._greatest_bytes = greatest_bytes
        self._free: deque[U8Array] = deque(maxlen=kept)  # the last one given back is lent first: it is in the cache

    @property
    def free(self) -> int:
        """Buffers that are kept now."""
        return len(self._free)

    def lend(self, size: int) -> U8Array:
        """*size* bytes of anything."""
        if not LEAST_BYTES <= size <= self._greatest_bytes:
            return np.empty(size, np.uint8)
        try:
            whole = self._free.pop()
        except IndexError:
            whole = np.empty(self._greatest_bytes, np.uint8)
        lease = whole[:size]
        weakref.finalize(lease, self._free.append, whole).atexit = False
        # Slices of an array refer to the array that owns its memory, those of a memoryview's to the memoryview: so
        # each of them, and what was made of it, keeps the lease.
        return np.frombuffer(lease.data, np.uint8)


class BufferPools:
    """Little ones out of little buffers, so that an answer's rows do not keep what its records would need."""

    def __init__(self) -> None:
        self._little = BufferPool(kept=LITTLE_KEPT, greatest_bytes=LITTLE_BYTES)
        self._large = BufferPool()

    def lend(self, size: int) -> U8Array:
        """*size* bytes of anything."""
        return (self._little if size <= LITTLE_BYTES else self._large).lend(size)


POOL = BufferPools()
