"""OpenFile: a descriptor that is closed when its last reference is dropped.

One thread may delete a file while others read it. If the descriptor were closed at once, its number could belong to
another file by the time the other thread uses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable


class OpenFile:
    """Owner of a descriptor. Keep a reference while `descriptor` is in use."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @property
    def is_deleted(self) -> bool:
        """True if the file has no name any more: it was deleted or replaced."""
        return os.fstat(self.descriptor).st_nlink == 0

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # bound early: `os` may be gone at exit
        close(self.descriptor)
