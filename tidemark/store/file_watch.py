"""Being told that another process has read a file, by inotify: a descriptor that an event loop can wait on.

A futex needs a thread that sleeps on it, and its turn before the event loop's; this goes straight to the loop. A read
of one byte tells everybody who watches, whatever process, container or mount it is in, and leaves no trace on the disk.
Where there is no inotify nobody is told: whoever waits looks by itself now and then.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

_IN_ACCESS = 1
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC  # of inotify_init1, by the same numbers
_MANY_EVENTS = 4096  # bytes: equal events that were not taken yet are one


class FileWatch:
    """Watches one file at a time; `descriptor` is readable once somebody has read it. OSError where it cannot be."""

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise OSError("there is no inotify here")
        self._library = ctypes.CDLL(None, use_errno=True)
        self.descriptor = self._call("inotify_init1", ctypes.c_int(_FLAGS))
        self._watched: int | None = None

    def watch(self, path: Path) -> None:
        """From now on this file, and no other. FileNotFoundError when it is not there."""
        self.forget()
        name = ctypes.c_char_p(os.fsencode(path))
        self._watched = self._call("inotify_add_watch", self.descriptor, name, ctypes.c_uint32(_IN_ACCESS))

    def forget(self) -> None:
        """No file."""
        if self._watched is not None:
            with contextlib.suppress(OSError):  # it was deleted
                self._call("inotify_rm_watch", self.descriptor, self._watched)
            self._watched = None

    def take(self) -> bool:
        """Whether anything came since the last time."""
        try:
            return bool(os.read(self.descriptor, _MANY_EVENTS))
        except BlockingIOError:
            return False

    def close(self) -> None:
        """Watch no more."""
        os.close(self.descriptor)

    def _call(self, name: str, *arguments: object) -> int:
        result: int = getattr(self._library, name)(*arguments)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), name)
        return result


def tell_watchers(descriptor: int) -> None:
    """Let everybody know who watches the file behind *descriptor*, which has at least one byte."""
    os.pread(descriptor, 1, 0)
