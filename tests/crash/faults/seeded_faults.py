"""A disk that fails at a random call, and reads that flip a random bit."""

from __future__ import annotations

import contextlib
import enum
import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.store.storage import DiskStorage, Words


class DiskFault(enum.Enum):
    """The disk's fault from the chosen call on, until it is healed."""

    FULL = "ENOSPC"  # no new file and no write into a hole; a part of it may have been written
    WRITE = "EIO on one write"
    SYNC = "EIO on fdatasync"
    READ_ONLY = "remounted read-only"


class SeededFaults(DiskStorage):
    """When it is armed, it lets *calls* mutating calls pass, and then fails."""

    def __init__(self, fault: DiskFault, random_: random.Random) -> None:
        self.fault = fault
        self.happened = False
        self.retried_syncs = 0
        self._failed_file = 0
        self._random = random_
        self._left: int | None = None
        self._healed = False

    def arm(self, calls: int) -> None:
        """Start counting calls."""
        self._left = calls

    def heal(self) -> None:
        """End the fault."""
        self._healed = True

    def _is_due(self) -> bool:
        if self._left is None or self._healed:
            return False
        self._left -= 1
        return self._left < 0

    def _write_error(self) -> OSError | DiskFullError | None:
        """Return the fault of the next write, if any."""
        if self.fault is DiskFault.SYNC or not self._is_due():
            return None
        if self.fault is DiskFault.WRITE:
            self._healed = True
        self.happened = True
        if self.fault is DiskFault.FULL:
            return DiskFullError("the disk is full: drawn", errno=errno.ENOSPC)
        return OSError(errno.EIO if self.fault is DiskFault.WRITE else errno.EROFS, "drawn")

    def _raise_write_error(self) -> None:
        error = self._write_error()
        if error is not None:
            raise error

    def sync_file(self, inode: int, sync: Callable[[], None]) -> None:
        """Sync one file, or fail."""
        if self.fault is DiskFault.SYNC:
            if self.happened:
                self.retried_syncs += inode == self._failed_file
            elif self._is_due():
                self.happened, self._failed_file = True, inode
                raise FlushFailedError("fdatasync failed: drawn", errno=errno.EIO)
        sync()

    def create(self, path: Path, size: int) -> int:
        self._raise_write_error()
        return super().create(path, size)

    def create_unsynced(self, path: Path, size: int) -> int:
        self._raise_write_error()
        return super().create_unsynced(path, size)

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        in_place = self.fault is DiskFault.FULL and _is_allocated(descriptor, at, len(data))
        error = None if in_place else self._write_error()
        if error is not None:
            if self.fault is not DiskFault.READ_ONLY:
                super().pwrite(descriptor, memoryview(data)[: self._random.randrange(len(data) + 1)], at)
            raise error
        super().pwrite(descriptor, data, at)

    def fdatasync(self, descriptor: int) -> None:
        self.sync_file(os.fstat(descriptor).st_ino, lambda: super(SeededFaults, self).fdatasync(descriptor))

    def truncate(self, descriptor: int, size: int) -> None:
        self._raise_write_error()
        super().truncate(descriptor, size)

    def rename(self, source: Path, target: Path) -> None:
        self._raise_write_error()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        if self.fault is DiskFault.READ_ONLY and path.exists():
            self._raise_write_error()
        super().unlink(path)

    def words(self, path: Path, size: int) -> Words:
        words = super().words(path, size)
        return _Words(words, path.stat().st_ino, self)


def _is_allocated(descriptor: int, at: int, length: int) -> bool:
    """Return True if these bytes have blocks: a full disk still accepts them."""
    with contextlib.suppress(OSError):
        return os.lseek(descriptor, at, os.SEEK_DATA) == at and os.lseek(descriptor, at, os.SEEK_HOLE) >= at + length
    return False


class _Words:
    """Words whose flush counts as a sync."""

    def __init__(self, words: Words, inode: int, storage: SeededFaults) -> None:
        self._words = words
        self._inode = inode
        self._storage = storage
        self.load, self.load_every, self.store = words.load, words.load_every, words.store
        self.address, self.close = words.address, words.close

    def flush(self) -> None:
        self._storage.sync_file(self._inode, self._words.flush)


@contextlib.contextmanager
def short_writes(random_: random.Random) -> Iterator[list[int]]:
    """Let every write write only a part, as the kernel may. Yield the number of such writes."""
    pwrite, count = os.pwrite, [0]

    def short(descriptor: int, data: Any, at: int) -> int:
        view = memoryview(data).cast("B")
        if len(view) < 2:
            return pwrite(descriptor, view, at)
        count[0] += 1
        return pwrite(descriptor, view[: random_.randrange(1, len(view))], at)

    with mock.patch.object(os, "pwrite", short):
        yield count


@contextlib.contextmanager
def flipped_reads(random_: random.Random, share: float) -> Iterator[list[int]]:
    """Flip one bit in a *share* of the log's reads, never in two consecutive ones. Yield the number of flips."""
    pread, preadv, flips, last = os.pread, os.preadv, [0], [False]

    def is_drawn(descriptor: int, length: int) -> bool:
        if "/commitlog/" not in os.readlink(f"/proc/self/fd/{descriptor}"):
            return False
        last[0] = not last[0] and length > 0 and random_.random() < share
        flips[0] += last[0]
        return last[0]

    def flip(view: memoryview) -> None:
        view[random_.randrange(len(view))] ^= 1 << random_.randrange(8)

    def wrong_pread(descriptor: int, length: int, at: int) -> bytes:
        data = bytearray(pread(descriptor, length, at))
        if is_drawn(descriptor, len(data)):
            flip(memoryview(data))
        return bytes(data)

    def wrong_preadv(descriptor: int, buffers: Any, at: int, flags: int = 0) -> int:
        got = preadv(descriptor, buffers, at, flags)
        if is_drawn(descriptor, got):
            flip(memoryview(buffers[0]).cast("B")[:got])
        return got

    with mock.patch.object(os, "pread", wrong_pread), mock.patch.object(os, "preadv", wrong_preadv):
        yield flips
