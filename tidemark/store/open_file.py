"""A descriptor that closes when its last user has let go of it.

Files are deleted by one thread while others read them. A descriptor that was closed at once might be another file's
number by the time the other thread uses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable


class OpenFile:
    """Hold on to it for as long as `descriptor` is used."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @property
    def is_deleted(self) -> bool:
        """Whether the file's name has gone, or is another file's by now."""
        return os.fstat(self.descriptor).st_nlink == 0

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # bound: `os` may be gone at exit
        close(self.descriptor)
