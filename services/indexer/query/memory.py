"""Giving memory back: answers are buffers of megabytes that live for milliseconds, made on several threads.

What they are made in comes from `tidemark.read.buffers`.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path

import pyarrow as pa

from tidemark.settings.malloc import limit_malloc

_MADV_DONTNEED = 4
_COMPILER = "libllvmlite"  # 50 MB of code that loads the compiled loops and then rests; read again from its file if not
_GC_THRESHOLDS = 50_000, 20, 50  # an answer is thousands of dicts without a cycle


def limit_memory() -> None:
    """Settle malloc, Arrow's pool and the garbage collector. Once, before threads start."""
    limit_malloc()
    pa.set_memory_pool(pa.system_memory_pool())
    gc.set_threshold(*_GC_THRESHOLDS)


def settle_memory() -> None:
    """Let go of what only the start needed. Once, when all code is loaded and before requests come."""
    gc.freeze()  # a full collection need not look at what stays for ever
    with contextlib.suppress(OSError, AttributeError):  # another C library
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
