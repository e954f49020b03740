"""Bytes between two inaccessible pages: a compiled loop that reads or writes beyond them ends the process.

The bytes are also in the file `build/fuzz/last-input`, which outlives such a process.
"""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path

import numpy as np

from tidemark.format.dispatch_request import U8Array

LAST_INPUT = Path("build/fuzz/last-input")
_PAGE = mmap.PAGESIZE
_NO_ACCESS = 0


class GuardedBuffer:
    """A buffer of *size* bytes that is lent repeatedly; only the last loan may be used."""

    def __init__(self, size: int) -> None:
        self._room = -(-size // _PAGE) * _PAGE
        self._map = mmap.mmap(-1, self._room + 2 * _PAGE)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        libc = ctypes.CDLL(None, use_errno=True)
        for address in (base, base + _PAGE + self._room):
            if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(_PAGE), _NO_ACCESS):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._bytes = np.frombuffer(self._map, np.uint8)[_PAGE : _PAGE + self._room]
        LAST_INPUT.parent.mkdir(parents=True, exist_ok=True)

    def lend(self, data: bytes, *, at_end: bool) -> U8Array:
        """Return a copy of *data* whose last byte, or first one, is next to the inaccessible page."""
        LAST_INPUT.write_bytes(data)
        stretch = self._bytes[self._room - len(data) :] if at_end else self._bytes[: len(data)]
        stretch[:] = np.frombuffer(data, np.uint8)
        return stretch
