"""Files that are not in memory, for tests of reads that must not wait for a disk."""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.waiting import until
from tidemark.read.cached import NotCachedError, cached_only

_MOST_S = 5.0
_TRY_S = 60.0
_LIBC = ctypes.CDLL(None, use_errno=True)


def drop_from_page_cache(*roots: Path) -> None:
    """Sync the files *roots* or below them, and drop their pages; skip the test on a file system in memory.

    No process may have mapped them.
    """
    for path in (path for root in roots for path in [root, *root.rglob("*")] if path.is_file()):
        if not _is_dropped(path):
            with tempfile.NamedTemporaryFile(dir=path.parent) as new:
                new.write(b"x")
                new.flush()
                if not _is_dropped(Path(new.name)):
                    pytest.skip(f"all files in {path.parent} stay in memory")
            pytest.fail(f"{path} stays in memory: is it mapped?")


def require_refused(is_refused: Callable[[], bool], *roots: Path) -> None:
    """Require that a read that may not wait for the disk is refused after the files *roots* or below were dropped.

    The kernel begins to read even then, and answers if the disk was faster, which some disks are for many reads in
    sequence: it is tried again for up to _TRY_S.
    """

    def dropped_is_refused() -> bool:
        drop_from_page_cache(*roots)
        return is_refused()

    until(dropped_is_refused, "a read that may not wait is refused", _TRY_S)


def would_wait(read: Callable[[], object]) -> bool:
    """Return True if *read* raises NotCachedError where it may not wait."""
    try:
        with cached_only():
            read()
    except NotCachedError:
        return True
    return False


def _is_dropped(path: Path) -> bool:
    """Sync the file and drop its pages; return False if some are still in memory after _MOST_S.

    The kernel keeps pages that another processor has just used, so it is asked until none is left.
    """
    deadline = time.monotonic() + _MOST_S
    with path.open("rb") as file:
        os.fsync(file.fileno())
        while time.monotonic() < deadline:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if not _has_pages_in_memory(path):
                return True
            time.sleep(0.01)
    return False


def _has_pages_in_memory(path: Path) -> bool:
    if not path.stat().st_size:
        return False
    content = np.memmap(path, np.uint8, "r")
    pages = np.zeros(-(-content.size // mmap.PAGESIZE), np.uint8)
    at, size = ctypes.c_void_p(content.ctypes.data), ctypes.c_size_t(content.size)
    if _LIBC.mincore(at, size, ctypes.c_void_p(pages.ctypes.data)):
        raise OSError(ctypes.get_errno(), "mincore", str(path))
    return bool((pages & 1).any())
