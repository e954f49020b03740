"""Lease: a lock that its holder loses after a time without renewal. A flock alone does not detect a hanging holder.

The file is locked with `flock`, so a holder that ends in any way releases it at once, and a waiting process continues.
In addition, the holder renews the two words in the file: its generation and a count of renewals. A waiting process that
sees the same words for a lease's length replaces the file by one of the next generation and holds that. The previous
holder is fenced: by its own clock it knows until when no other process can have replaced the file, and after that time
it checks the file before it continues (`confirm`).

Clocks of two machines are never compared. The words are read from the file each time, not mapped, because only reads
are coherent on a network file system.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
import time
from pathlib import Path

from tidemark.errors import StoreLockedError

_WORDS = struct.Struct("<QQ")  # generation, renewals
_RENEWALS_A_LEASE = 4


class Lease:
    """A lease of *length_ms* on a file of Tidemark. It is held from `acquire` until `release`, or until it is lost.

    generation  number of changes of the holder, including this one
    was_taken   True if the previous holder was silent: it may still assume that it holds the lease
    """

    def __init__(self, path: Path, *, length_ms: int) -> None:
        self.generation = 0
        self.was_taken = False
        self._path = path
        self._length_s = length_ms / 1000
        self._descriptor: int | None = None
        self._renewals = 0
        self._valid_until = 0.0
        self._renewing = threading.Lock()
        self._let_go = threading.Event()
        self._renewer: threading.Thread | None = None

    # -- acquisition ----------------------------------------------------------------------------------------------

    def acquire(self) -> None:
        """Block until the lease is released, or its holder has been silent for a lease's length; then hold it."""
        while self._descriptor is None:
            waiter = _LockWait(self._path)
            silent = self._wait_for_silence(waiter)
            if silent is not None:
                waiter.give_up()
                taken = _replace(self._path, silent)
                if taken is not None:
                    self._hold(taken, taken=True)
            elif waiter.is_over.is_set() and _is_current(self._path, waiter.descriptor):
                self._hold(waiter.descriptor, taken=False)
            else:
                waiter.give_up()

    def _wait_for_silence(self, waiter: _LockWait) -> tuple[int, int] | None:
        """Block until the holder is silent and return its last words; None once it releases or the file is replaced."""
        seen, since = _read(self._path), time.monotonic()
        while not waiter.is_over.wait(self._length_s / _RENEWALS_A_LEASE):
            if not _is_current(self._path, waiter.descriptor):
                return None
            now = _read(self._path)
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since >= self._length_s:
                return now
        return None

    def try_acquire(self) -> bool:
        """Acquire the lease if it is free. Return True on success."""
        descriptor = _open(self._path)
        if not (_try_flock(descriptor) and _is_current(self._path, descriptor)):
            os.close(descriptor)
            return False
        self._hold(descriptor, taken=False)
        return True

    def _hold(self, descriptor: int, *, taken: bool) -> None:
        self._descriptor, self.was_taken = descriptor, taken
        self.generation = _words_of(descriptor)[0] + (0 if taken else 1)
        self._renewals = 0
        self._write()
        self._let_go.clear()
        self._renewer = threading.Thread(target=self._renew_on, name="lease", daemon=True)
        self._renewer.start()

    # -- while held -----------------------------------------------------------------------------------------------

    def confirm(self) -> None:
        """Raise StoreLockedError if another process may hold the lease. While it is valid, only the clock is read."""
        if _now() >= self._valid_until and not self._renew():
            raise StoreLockedError(
                f"this task did not renew {self._path} for {self._length_s} s: another task has taken it over",
                path=str(self._path),
                generation=self.generation,
            )

    def _renew_on(self) -> None:
        while not self._let_go.wait(self._length_s / _RENEWALS_A_LEASE):
            with contextlib.suppress(OSError):  # the file system may be gone for a while; `confirm` raises
                if not self._renew():
                    return

    def _renew(self) -> bool:
        with self._renewing:
            if self._descriptor is None or _read(self._path)[0] != self.generation:
                return False
            self._write()
            return True

    def _write(self) -> None:
        assert self._descriptor is not None
        valid_until = _now() + self._length_s
        self._renewals += 1
        os.pwrite(self._descriptor, _WORDS.pack(self.generation, self._renewals), 0)
        self._valid_until = valid_until

    def unlock(self) -> None:
        """Release the lease. It may be acquired again."""
        self.release()

    def release(self) -> None:
        """Release the lease and end its thread."""
        self._let_go.set()
        with self._renewing:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
            self._valid_until = 0.0
        if self._renewer is not None:
            self._renewer.join()
            self._renewer = None


class _LockWait:
    """Thread that waits for the flock on a file, so that the caller can watch for silence meanwhile."""

    def __init__(self, path: Path) -> None:
        self.is_over = threading.Event()
        self.descriptor = _open(path)
        self._path = path
        self._mutex = threading.Lock()
        self._is_wanted = True
        threading.Thread(target=self._wait, name="lease-wait", daemon=True).start()

    def _wait(self) -> None:
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        with self._mutex:
            if not self._is_wanted:
                os.close(self.descriptor)
            self.is_over.set()

    def give_up(self) -> None:
        """Stop waiting: the lock is released as soon as the thread acquires it."""
        with self._mutex:
            self._is_wanted = False
            if self.is_over.is_set():
                os.close(self.descriptor)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)


def _try_flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_current(path: Path, descriptor: int) -> bool:
    """Return True if *descriptor* is the file that is now at *path*."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _read(path: Path) -> tuple[int, int]:
    """Return the current (generation, renewals) in the file, of any holder."""
    descriptor = _open(path)
    try:
        return _words_of(descriptor)
    finally:
        os.close(descriptor)


def _words_of(descriptor: int) -> tuple[int, int]:
    data = os.pread(descriptor, _WORDS.size, 0)
    generation, renewals = _WORDS.unpack(data) if len(data) == _WORDS.size else (0, 0)
    return generation, renewals


def _replace(path: Path, silent: tuple[int, int]) -> int | None:
    """Replace the file by a locked one of the next generation and return its descriptor.

    Return None if another process was first, or a leftover file was in the way.

    silent  the words that have not changed for a lease's length. If they have changed, another process has taken over
            meanwhile, and the file is not replaced.

    The new file's name contains the generation, so only one process creates it. A process that has read older words
    notices that before the rename. Only the holder of the lock on the file of that name renames or removes it.
    """
    generation = silent[0] + 1
    made = path.with_name(f"{path.name}.{generation}")
    try:
        descriptor = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        _remove_leftover(made)
        return None
    if _try_flock(descriptor) and _is_current(made, descriptor):  # otherwise it was removed as a leftover
        if _read(path) == silent:
            os.pwrite(descriptor, _WORDS.pack(generation, 0), 0)
            made.rename(path)
            return descriptor
        made.unlink()
    os.close(descriptor)
    return None


def _remove_leftover(made: Path) -> None:
    """Remove the file of a process that was killed before the rename. It is unlocked."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(made, os.O_RDWR | os.O_CLOEXEC)
        if _try_flock(descriptor) and _is_current(made, descriptor):
            made.unlink()
        os.close(descriptor)


def _now() -> float:
    """Return a monotonic time that includes suspension of the machine."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
