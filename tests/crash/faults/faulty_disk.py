"""A disk that fails: errors and short writes at random system calls, below the services' real storage."""

from __future__ import annotations

import enum
import errno
import os
import random
from pathlib import Path

from tests.crash.simulated_disk.recorder import Recorder


class Fault(enum.Enum):
    """The kind of fault."""

    DISK_FULL = "disk full"  # temporary: no file grows and none is created
    WRITE_ERROR = "EIO on a write"
    SYNC_ERROR = "EIO on a sync"
    SHORT_WRITES = "short writes"  # all writes: no error, but fewer bytes per call
    READ_ONLY = "remounted read-only"  # permanent


_ERRORS = {
    Fault.DISK_FULL: errno.ENOSPC,
    Fault.WRITE_ERROR: errno.EIO,
    Fault.SYNC_ERROR: errno.EIO,
    Fault.READ_ONLY: errno.EROFS,
}
_CALLS = {
    Fault.DISK_FULL: {"create", "pwrite", "resize", "mkdir", "rename"},
    Fault.WRITE_ERROR: {"pwrite"},
    Fault.SYNC_ERROR: {"sync"},
    Fault.SHORT_WRITES: {"pwrite"},
    Fault.READ_ONLY: {"create", "pwrite", "resize", "mkdir", "rename", "unlink", "rmdir"},
}


class FaultyDisk(Recorder):
    """A recorder whose next calls fail after `arm`; a failing write may write a part first."""

    def __init__(self, root: Path, source: random.Random) -> None:
        super().__init__(root)
        self._source = source
        self._fault: Fault | None = None
        self._wait = self._left = 0
        self.failed = 0

    def arm(self, fault: Fault, *, after: int, times: int) -> None:
        """Let *times* matching calls fail, after *after* successful ones."""
        self._fault, self._wait, self._left = fault, after, times

    def mend(self) -> None:
        """End the fault."""
        self._fault = None

    def before(self, call: str, place: str | None, length: int = 0) -> int:
        fault = self._fault
        if fault is None or call not in _CALLS[fault]:
            return length
        if self._wait > 0:
            self._wait -= 1
            return length
        if fault is Fault.SHORT_WRITES:
            return self._source.randint(1, length) if length > 1 else length
        if fault is not Fault.READ_ONLY:
            if self._left == 0:
                return length
            self._left -= 1
        self.failed += 1
        raise OSError(_ERRORS[fault], os.strerror(_ERRORS[fault]))
