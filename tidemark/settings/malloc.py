"""What the C library keeps of memory that is freed: services take and make buffers of megabytes that live for moments.

Left alone, glibc keeps an arena a thread and stops unmapping what it has seen freed: a query service had 400 MB after a
minute of large pulls. And an arena gives its free end back at once, so that the next buffer costs page faults again.
"""

from __future__ import annotations

import contextlib
import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of mallopt
_MMAP_THRESHOLD_BYTES = 2 << 20  # larger buffers are mappings of their own, gone when they are freed
_TRIM_THRESHOLD_BYTES = 8 << 20  # free memory an arena keeps; 128 KiB by default
_ARENAS = 2


def limit_malloc() -> None:
    """Settle it, once, before threads start. Nothing happens with another C library than glibc."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
