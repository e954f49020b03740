"""Locks between processes: RocketMQ's `lock` file (docs/format.md §1) and locks of our own folders.

RocketMQ's is a POSIX record lock on byte 0. It belongs to the process, and closing any descriptor of the file in that
process releases it. Therefore the file is opened only once: `_held` contains the files that this process must not open
again. Our own locks are `flock`s, which belong to the open file and end with it.
"""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from tidemark.errors import StoreLockedError

_FLOCK = struct.Struct("hhqqi4x")  # struct flock of 64-bit Linux: type, whence, start, length, pid
_held: dict[tuple[int, int], int] = {}  # device and inode of locked files → pid that locked (a fork holds nothing)


def _identity(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino


def _is_held_here(path: Path) -> bool:
    return path.exists() and _held.get(_identity(path)) == os.getpid()


def lock_holder(path: Path) -> int | None:
    """Return the pid of the process that holds RocketMQ's lock on *path*; None if it is free.

    0: the holder is in another pid namespace.
    """
    if _is_held_here(path):
        return os.getpid()
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
        kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else pid


class StoreLock:
    """RocketMQ's lock on a store. Its holder may write the CommitLog."""

    def __init__(self, path: Path) -> None:
        if _is_held_here(path):
            raise StoreLockedError(f"this process already holds {path}", path=str(path), pid=os.getpid())
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0, os.SEEK_SET)
            os.pwrite(descriptor, b"lock", 0)
            os.fsync(descriptor)
        except OSError as error:
            os.close(descriptor)
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
            holder = lock_holder(path)
            raise StoreLockedError(
                f"another process{f' (pid {holder})' if holder else ''} holds {path}", path=str(path), pid=holder
            ) from error
        self._descriptor: int | None = descriptor
        self._identity = _identity(path)
        _held[self._identity] = os.getpid()

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            _held.pop(self._identity, None)
            os.close(self._descriptor)
            self._descriptor = None


class FolderLock:
    """A flock on a file of Tidemark. It is held until `release`, or until the process ends in any way."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)

    def acquire(self) -> None:
        """Block until the lock is acquired, without a timeout."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Acquire the lock if it is free. Return True on success."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def require(self) -> None:
        """Acquire the lock, or raise StoreLockedError."""
        if not self.try_acquire():
            raise StoreLockedError(f"another process holds {self._path}", path=str(self._path))

    def unlock(self) -> None:
        """Release the lock and keep the file open, so that it can be acquired again."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def release(self) -> None:
        """Release the lock and close the file."""
        os.close(self._descriptor)
