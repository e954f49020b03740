"""Release of memory after the start of a service, and exclusion of permanent objects from the collector."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path

_MADV_DONTNEED = 4
_COMPILER = "libllvmlite"  # 50 MB of code, unused once the compiled loops are loaded; pages are read again on use


def settle_memory() -> None:
    """Free memory after the start. Call it once, when all code is loaded.

    `gc.freeze` exempts permanent objects from full collections: in a writer these stopped every thread for 60 ms, each
    time that the number of objects had grown by a quarter.
    """
    gc.freeze()
    with contextlib.suppress(OSError, AttributeError):  # the C library is not glibc
        libc = ctypes.CDLL(None)
        libc.malloc_trim(0)
        for start, size in _code_of(_COMPILER):
            libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _MADV_DONTNEED)


def _code_of(library: str) -> list[tuple[int, int]]:
    """Return (address, size) of the machine code of a loaded *library*: read-only pages backed by its file."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, mode, *_, path = line.split()
        if mode == "r-xp" and Path(path).name.startswith(library):
            start, end = (int(address, 16) for address in span.split("-"))
            found.append((start, end - start))
    return found
