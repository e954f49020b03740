"""BufferPool: reuses large buffers, because the first access to a new page costs more than reading data into it."""

from __future__ import annotations

import weakref
from collections import deque

import numpy as np

from tidemark.format.dispatch_request import U8Array

LEAST_BYTES = 128 << 10  # for smaller buffers the allocator is as fast
GREATEST_BYTES = 8 << 20
KEPT = 6
LITTLE_BYTES, LITTLE_KEPT = 1 << 20, 12


class BufferPool:
    """Pool that lends buffers and takes them back when they are no longer referenced. Thread-safe.

    Keeps at most *kept* buffers of *greatest_bytes*, of which only the pages ever written are in memory. Further and
    larger buffers are returned to the system.
    """

    def __init__(self, *, kept: int = KEPT, greatest_bytes: int = GREATEST_BYTES) -> None:
        self._greatest_bytes = greatest_bytes
        self._free: deque[U8Array] = deque(
            maxlen=kept
        )  # used as a stack: the buffer returned last is likely in the CPU cache

    @property
    def free(self) -> int:
        """Number of buffers in the pool."""
        return len(self._free)

    def lend(self, size: int) -> U8Array:
        """Return a buffer of *size* uninitialised bytes."""
        if not LEAST_BYTES <= size <= self._greatest_bytes:
            return np.empty(size, np.uint8)
        try:
            whole = self._free.pop()
        except IndexError:
            whole = np.empty(self._greatest_bytes, np.uint8)
        lease = whole[:size]
        weakref.finalize(lease, self._free.append, whole).atexit = False
        # A slice of an array refers to the owner of the memory; a slice of a memoryview's array, to the memoryview.
        # Therefore each slice, and each object derived from it, keeps the lease alive.
        return np.frombuffer(lease.data, np.uint8)


class BufferPools:
    """Pools of small and large buffers, so that a response's rows do not occupy a buffer meant for its records."""

    def __init__(self) -> None:
        self._little = BufferPool(kept=LITTLE_KEPT, greatest_bytes=LITTLE_BYTES)
        self._large = BufferPool()

    def lend(self, size: int) -> U8Array:
        """Return a buffer of *size* uninitialised bytes."""
        if size < LEAST_BYTES:
            return np.empty(size, np.uint8)
        return (self._little if size <= LITTLE_BYTES else self._large).lend(size)


POOL = BufferPools()
