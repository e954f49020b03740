"""A lock that its holder loses when it is silent for too long: what a flock alone does not see is a holder that hangs.

The file is locked with `flock`, so a holder that ends in any way lets go at once, and whoever waits goes on. Beside
that the holder renews what the file says, its generation and a count of renewals. Who waits and sees the same words
for a lease's length puts a new file of the next generation in its place, and holds that. The one before is fenced: it
knows by its own clock until when nobody can have done so, and looks before it goes on later (`confirm`).

Nothing is compared between clocks of two machines, and the words are read anew from the file each time, not mapped:
on a network file system that is what is coherent.
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
    """A lease on a file of ours, of *length_ms*. Held from `acquire` until `release`, or until it is lost.

    generation  how often it has changed hands, this time included
    was_taken   whether the holder before was silent, and may still believe that it holds it
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

    # -- taking it ------------------------------------------------------------------------------------------------

    def acquire(self) -> None:
        """Wait for it: until it is let go, or its holder has been silent for a lease's length."""
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
        """What the holder has said last, once it is silent; None as soon as it has let go, or the file is another."""
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
        """Take it if nobody has it."""
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

    # -- holding it -----------------------------------------------------------------------------------------------

    def confirm(self) -> None:
        """StoreLockedError when another may hold it by now. Costs a look at the clock while it is fresh."""
        if _now() >= self._valid_until and not self._renew():
            raise StoreLockedError(
                f"this task was silent for so long that another has taken over ({self._path})",
                path=str(self._path),
                generation=self.generation,
            )

    def _renew_on(self) -> None:
        while not self._let_go.wait(self._length_s / _RENEWALS_A_LEASE):
            with contextlib.suppress(OSError):  # of a file system that is gone for a while: `confirm` tells
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
        """Let go; it may be taken again."""
        self.release()

    def release(self) -> None:
        """Let go."""
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
    """A thread that waits for the flock on a file: the caller looks at something else meanwhile."""

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
        """Nobody wants the lock any more: it is let go as soon as the thread gets it."""
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
    """Whether the open file is the one that lies there."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _read(path: Path) -> tuple[int, int]:
    """(generation, renewals) as the file says now, whoever wrote it."""
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
    """Put a locked file of the next generation in its place; None when another was first, or there was a leftover.

    silent  the words that have not changed for a lease's length: of whoever took over meanwhile nothing is taken

    Its name carries the generation, so only one makes it; who has read older words finds out before the rename. Only
    who holds the lock of the file that lies there renames or removes it.
    """
    generation = silent[0] + 1
    made = path.with_name(f"{path.name}.{generation}")
    try:
        descriptor = os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        _remove_leftover(made)
        return None
    if _try_flock(descriptor) and _is_current(made, descriptor):  # else it was taken for a leftover
        if _read(path) == silent:
            os.pwrite(descriptor, _WORDS.pack(generation, 0), 0)
            made.rename(path)
            return descriptor
        made.unlink()
    os.close(descriptor)
    return None


def _remove_leftover(made: Path) -> None:
    """Of one that was killed before it could rename it: nobody holds it."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = os.open(made, os.O_RDWR | os.O_CLOEXEC)
        if _try_flock(descriptor) and _is_current(made, descriptor):
            made.unlink()
        os.close(descriptor)


def _now() -> float:
    """Goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
