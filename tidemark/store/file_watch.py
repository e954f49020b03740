"""FileWatch: notifies an event loop, by inotify, that another process has read a file.

A futex needs a sleeping thread, which must be scheduled before the event loop; a descriptor wakes the loop directly. A
read of one byte notifies all watchers, in any process, container or mount, and changes nothing on the disk. Without
inotify there are no notifications, and a waiting process polls instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_IN_ACCESS = 1
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC  # inotify_init1 uses the same values
_MANY_EVENTS = 4096  # bytes; the kernel merges equal pending events


class FileWatch:
    """Watch of one file at a time. `descriptor` becomes readable after a read of the file.

    OSError: the system has no inotify.
    """

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError(f"inotify is not available on {sys.platform}")
        self._library = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._call("inotify_init1", ctypes.c_int(_FLAGS))
        self._watched: int | None = None

    def watch(self, path: Path) -> None:
        """Watch this file instead of the previous one. FileNotFoundError: it does not exist."""
        self.forget()
        name = ctypes.c_char_p(os.fsencode(path))
        self._watched = self._call("inotify_add_watch", self.descriptor, name, ctypes.c_uint32(_IN_ACCESS))

    def forget(self) -> None:
        """Stop watching the file."""
        if self._watched is not None:
            with contextlib.suppress(OSError):  # it was deleted
                self._call("inotify_rm_watch", self.descriptor, self._watched)
            self._watched = None

    def take(self) -> bool:
        """Return True if events arrived since the last call."""
        try:
            return bool(os.read(self.descriptor, _MANY_EVENTS))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)

    def _call(self, name: str, *arguments: object) -> int:
        result: int = getattr(self._library, name)(*arguments)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)
        return result


def notify_watchers(descriptor: int) -> None:
    """Notify all watchers of the file open at *descriptor*, which has at least one byte."""
    os.pread(descriptor, 1, 0)
