"""Limits of the memory that glibc keeps after `free`, for services with short-lived buffers of megabytes.

By default glibc keeps one arena per thread and raises its threshold for separate mappings: a query service held 400 MB
after a minute of large pulls. An arena also returns its free end at once, so that the next buffer costs page faults.
"""

from __future__ import annotations

import contextlib
import ctypes

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # parameters of mallopt
_MMAP_THRESHOLD_BYTES = 2 << 20  # larger buffers are separate mappings, which free() unmaps
_TRIM_THRESHOLD_BYTES = 8 << 20  # free memory at an arena's end that is kept; default 128 KiB
_ARENAS = 2


def limit_malloc() -> None:
    """Set the limits once, before threads start. No effect if the C library is not glibc."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
