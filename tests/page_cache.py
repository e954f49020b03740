"""Files that are not in memory, for tests of reads that must not wait for a disk."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path

import numpy as np
import pytest

_MOST_S = 5.0
_LIBC = ctypes.CDLL(None, use_errno=True)


def drop_from_page_cache(*roots: Path) -> None:
    """Sync the files *roots* or below them, and drop their pages; skip the test on a file system in memory.

    No process may have mapped them. The kernel keeps pages that another processor has just used, so it is asked until
    none is left.
    """
    deadline = time.monotonic() + _MOST_S
    for path in (path for root in roots for path in [root, *root.rglob("*")] if path.is_file()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while _has_pages_in_memory(path):
                if time.monotonic() > deadline:
                    pytest.skip(f"the pages of {path} stay in memory")
                time.sleep(0.01)
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _has_pages_in_memory(path: Path) -> bool:
    if not path.stat().st_size:
        return False
    content = np.memmap(path, np.uint8, "r")
    pages = np.zeros(-(-content.size // mmap.PAGESIZE), np.uint8)
    at, size = ctypes.c_void_p(content.ctypes.data), ctypes.c_size_t(content.size)
    if _LIBC.mincore(at, size, ctypes.c_void_p(pages.ctypes.data)):
        raise OSError(ctypes.get_errno(), "mincore", str(path))
    return bool((pages & 1).any())
