"""Reads that never wait for a disk: data in the page cache is read directly, otherwise NotCachedError is raised.

The same applies to long computations: decompression, and Python code for each of many messages.

Data is nearly always in memory, and then a hand-over to another thread costs more than the read itself. However, an
event loop must not wait for a disk.
"""

from __future__ import annotations

import os
import threading

from tidemark.format.dispatch_request import U8Array

FEW_MESSAGES, FEW_BYTES = 32, 1 << 20  # limits of work that is done without another thread
_NO_WAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # Linux


class _Thread(threading.local):
    """What a thread may do now. is_cached_only: it must not wait."""

    is_cached_only = False


_thread = _Thread()


class NotCachedError(Exception):
    """The operation would wait for a disk or take long; run it in a thread that may block."""


class CachedOnly:
    """Makes the reads of a thread raise NotCachedError instead of waiting for a disk or another reader."""

    def __enter__(self) -> None:
        _thread.is_cached_only = True

    def __exit__(self, *_: object) -> None:
        _thread.is_cached_only = False


_CACHED_ONLY = CachedOnly()  # it has no state of its own, so one is enough


def cached_only() -> CachedOnly:
    """Return the context in which this thread must not wait."""
    return _CACHED_ONLY


def is_cached_only() -> bool:
    """Return True if this thread must not wait now."""
    return _thread.is_cached_only


def require_thread(messages: int, stored_bytes: int = 0) -> None:
    """Raise NotCachedError if this thread must not wait and this number of messages or bytes would take long."""
    if (messages > FEW_MESSAGES or stored_bytes > FEW_BYTES) and is_cached_only():
        raise NotCachedError


def pread(descriptor: int, length: int, offset: int) -> bytes:
    """Read like os.pread."""
    if not _thread.is_cached_only:
        return os.pread(descriptor, length, offset)
    buffer = bytearray(length)
    if _pread_now(descriptor, buffer, offset) < length:  # the rest does not exist or is not cached
        raise NotCachedError
    return bytes(buffer)


def pread_into(descriptor: int, buffer: U8Array, offset: int) -> int:
    """Return the number of bytes read into *buffer*; fewer than its length do not mean the end of the file."""
    return (
        _pread_now(descriptor, buffer.data, offset)
        if _thread.is_cached_only
        else os.preadv(descriptor, [buffer.data], offset)
    )


def _pread_now(descriptor: int, buffer: bytearray | memoryview, offset: int) -> int:
    if _NO_WAIT is None:
        raise NotCachedError
    try:
        return os.preadv(descriptor, [buffer], offset, _NO_WAIT)
    except OSError as error:  # EAGAIN, or EOPNOTSUPP if the file system lacks RWF_NOWAIT
        raise NotCachedError from error


def acquire(lock: threading.Lock) -> None:
    """Acquire *lock*, which another thread may hold during a read.

    Raises NotCachedError instead of waiting within `cached_only`.
    """
    if not lock.acquire(not _thread.is_cached_only):
        raise NotCachedError
