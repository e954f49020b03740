"""Giving memory back: answers are buffers of megabytes that live for milliseconds, made on several threads.

Left alone, glibc keeps an arena a thread and stops unmapping what it has seen freed: 400 MB after a minute of large
pulls. What answers are made in comes from `tidemark.read.buffers`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path

import pyarrow as pa

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of mallopt
_MMAP_THRESHOLD_BYTES = 2 << 20  # larger buffers are mappings of their own, gone when they are freed
_TRIM_THRESHOLD_BYTES = 8 << 20  # free memory an arena keeps: the default of 128 KiB costs page faults in every answer
_ARENAS = 2
_MADV_DONTNEED = 4
_COMPILER = "libllvmlite"  # 50 MB of code that loads the compiled loops and then rests; read again from its file if not
_GC_THRESHOLDS = 50_000, 20, 50  # an answer is thousands of dicts without a cycle


def limit_memory() -> None:
    """Settle malloc, Arrow's pool and the garbage collector. Once, before threads start."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)
        libc.mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD_BYTES)
        libc.mallopt(_M_ARENA_MAX, _ARENAS)
    pa.set_memory_pool(pa.system_memory_pool())
    gc.set_threshold(*_GC_THRESHOLDS)


def settle_memory() -> None:
    """Let go of what only the start needed. Once, when all code is loaded and before requests come."""
    gc.freeze()  # a full collection need not look at what stays for ever
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.malloc_trim(0)
        for start, size in _code_of(_COMPILER):
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _MADV_DONTNEED)


def _code_of(library: str) -> list[tuple[int, int]]:
    """(address, size) of the machine code of a loaded *library*: pages that nobody writes, and that its file has."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, mode, *_, path = line.split()
        if mode == "r-xp" and Path(path).name.startswith(library):
            start, end = (int(address, 16) for address in span.split("-"))
            found.append((start, end - start))
    return found
