"""Buffers that are lent again only when no reference to their former contents is left."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from tidemark.format.dispatch_request import U8Array
from tidemark.read.buffers import GREATEST_BYTES, LEAST_BYTES, LITTLE_BYTES, BufferPool, BufferPools


def address(buffer: U8Array) -> int:
    return int(buffer.ctypes.data)


def test_a_returned_buffer_is_lent_again() -> None:
    """The buffer that was returned last is lent first, whatever its size."""
    pool = BufferPool()
    first = pool.lend(LEAST_BYTES)
    at = address(first)
    del first
    assert pool.free == 1
    again = pool.lend(2 * LEAST_BYTES)
    assert (address(again), len(again), pool.free) == (at, 2 * LEAST_BYTES, 0)


@pytest.mark.parametrize(
    "view",
    [
        lambda buffer: buffer[5:9],
        lambda buffer: buffer[8:24].view(">i8"),
        lambda buffer: buffer.data,
        lambda buffer: memoryview(buffer[3:])[2:],
        lambda buffer: pa.py_buffer(buffer[1:]),
        lambda buffer: pa.py_buffer(buffer).slice(7),
        lambda buffer: np.frombuffer(buffer.data, np.int32),
        lambda buffer: buffer.reshape(-1, 2)[1],
    ],
)
def test_views_of_a_buffer_keep_it_lent(view: Callable[[U8Array], object]) -> None:
    """Slices, views, memoryviews and Arrow's buffers each keep the memory from being lent again."""
    pool = BufferPool()
    kept = view(pool.lend(LEAST_BYTES))
    assert pool.free == 0
    del kept
    assert pool.free == 1


def test_a_pool_keeps_a_limited_number_of_buffers() -> None:
    """Further buffers are returned to the system."""
    pool = BufferPool(kept=2)
    lent = [pool.lend(LEAST_BYTES) for _ in range(5)]
    del lent
    assert pool.free == 2


@pytest.mark.parametrize("size", [0, 1, LEAST_BYTES - 1, GREATEST_BYTES + 1])
def test_small_and_huge_buffers_are_not_pooled(size: int) -> None:
    """The allocator is as fast for small buffers, and huge buffers should not be kept."""
    pool = BufferPool()
    assert len(pool.lend(size)) == size
    assert pool.free == 0


@pytest.mark.parametrize(("size", "other"), [(LITTLE_BYTES, LITTLE_BYTES + 1), (LITTLE_BYTES + 1, LITTLE_BYTES)])
def test_small_buffers_do_not_reuse_large_ones(size: int, other: int) -> None:
    """The rows of a response would keep the memory of its records."""
    pools = BufferPools()
    at = address(pools.lend(size))
    kept = pools.lend(other)
    again = pools.lend(size)
    assert address(kept) != at
    assert address(again) == at
