"""What a service does once it has started: let go of what only the start needed, in memory and for the collector."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from pathlib import Path

_MADV_DONTNEED = 4
_COMPILER = "libllvmlite"  # 50 MB of code that loads the compiled loops and then rests; read again from its file if not


def settle_memory() -> None:
    """Once, when all code is loaded.

    A full garbage collection need not look at what stays for ever: in a writer it stopped every thread for 60 ms,
    each time a quarter more objects lived.
    """
    gc.freeze()
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
