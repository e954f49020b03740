"""Giving memory back: answers are buffers of megabytes that live for milliseconds, made on several threads.

Left alone, glibc keeps an arena a thread and stops unmapping what it has seen freed: 400 MB after a minute of large
pulls, and 180 MB like this.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of mallopt
_MMAP_THRESHOLD_BYTES = 2 << 20  # larger buffers are mappings of their own, gone when they are freed
_TRIM_THRESHOLD_BYTES = 16 << 20  # free memory an arena keeps: the default of 128 KiB costs page faults in every answer
_ARENAS = 2
_GC_THRESHOLDS = 50_000, 20, 50  # an answer is thousands of dicts without a cycle


def limit_memory() -> None:
    """Settle malloc, Arrow's pool and the garbage collector. Once, before threads start."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
    pa.set_memory_pool(pa.system_memory_pool())
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
