"""DiskGuard: rejects appends while the disk is nearly full."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from tidemark.errors import DiskFullError

_LOOK_EVERY_S = 1.0


def free_bytes(path: Path) -> int:
    """Return the bytes that this process may still use on the disk of *path*."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


class DiskGuard:
    """A check of the free disk space, which is measured at most once a second and only for an append."""

    def __init__(self, path: Path, min_free_bytes: int, *, look: Callable[[Path], int] = free_bytes) -> None:
        self._path = path
        self._min_free_bytes = min_free_bytes
        self._look = look
        self._free_bytes = min_free_bytes
        self._looked_s = float("-inf")

    def require_room(self) -> None:
        """Raise DiskFullError (facts: free_bytes, min_free_bytes) if less than the limit is free."""
        now = time.monotonic()
        if now - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now
            self._free_bytes = self._look(self._path)
        if self._free_bytes < self._min_free_bytes:
            raise DiskFullError(
                f"the disk is nearly full: {self._free_bytes:,} bytes are free, and appends need at least "
                f"{self._min_free_bytes:,} (TIDEMARK_MIN_FREE_DISK_BYTES)",
                free_bytes=self._free_bytes,
                min_free_bytes=self._min_free_bytes,
            )

    def saw_full_disk(self) -> None:
        """Measure the free space again at the next append, because a write has failed."""
        self._looked_s = float("-inf")
