"""DiskGuard: refuses appends while the disk is nearly full, and takes them again when space is back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from tidemark.errors import DiskFullError

_LOOK_EVERY_S = 1.0


def free_bytes(path: Path) -> int:
    """Bytes that this process may still use on the disk of *path*."""
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


class DiskGuard:
    """Looks at the disk at most once a second, and only when somebody wants to append."""

    def __init__(self, path: Path, min_free_bytes: int, *, look: Callable[[Path], int] = free_bytes) -> None:
        self._path = path
        self._min_free_bytes = min_free_bytes
        self._look = look
        self._free_bytes = min_free_bytes
        self._looked_s = float("-inf")

    def require_room(self) -> None:
        """DiskFullError (facts: free_bytes, min_free_bytes) when less than the limit is free."""
        now = time.monotonic()
        if now - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now
            self._free_bytes = self._look(self._path)
        if self._free_bytes < self._min_free_bytes:
            raise DiskFullError(
                "the disk is nearly full", free_bytes=self._free_bytes, min_free_bytes=self._min_free_bytes
            )

    def saw_full_disk(self) -> None:
        """A write has failed: look again at the next append."""
        self._looked_s = float("-inf")
