"""Reads that never wait for a disk: what is in the page cache is read here and now, anything else is refused.

So is work that takes long: Python for each of many messages, and decompressing them.

To hand a read to another thread costs more than the read itself where the data is in memory, as it nearly always is; an
event loop must not wait for a disk all the same.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from tidemark.format.dispatch_request import U8Array

FEW_MESSAGES, FEW_BYTES = 32, 1 << 20  # that are soon worked on one by one
_NO_WAIT: int | None = getattr(os, "RWF_NOWAIT", None)  # Linux
_local = threading.local()


class NotCachedError(Exception):
    """It would have to wait, or would take long: let a thread do it that may."""


@contextlib.contextmanager
def cached_only() -> Iterator[None]:
    """Within it, this thread's reads raise NotCachedError instead of waiting for a disk, or for a reader that does."""
    _local.is_on = True
    try:
        yield
    finally:
        _local.is_on = False


def is_cached_only() -> bool:
    """Whether this thread must not wait now."""
    return getattr(_local, "is_on", False)


def require_thread(messages: int, stored_bytes: int = 0) -> None:
    """NotCachedError where this thread must not wait and so many *messages*, or bytes, take work one by one."""
    if (messages > FEW_MESSAGES or stored_bytes > FEW_BYTES) and is_cached_only():
        raise NotCachedError


def pread(descriptor: int, length: int, offset: int) -> bytes:
    """As os.pread."""
    if not is_cached_only():
        return os.pread(descriptor, length, offset)
    buffer = bytearray(length)
    if _pread_now(descriptor, memoryview(buffer), offset) < length:  # the rest is not there, or not in memory
        raise NotCachedError
    return bytes(buffer)


def pread_into(descriptor: int, buffer: U8Array, offset: int) -> int:
    """How many bytes were read into *buffer*; fewer than it holds are no sign of the file's end."""
    return (
        _pread_now(descriptor, buffer.data, offset)
        if is_cached_only()
        else os.preadv(descriptor, [buffer.data], offset)
    )


def _pread_now(descriptor: int, buffer: memoryview, offset: int) -> int:
    if _NO_WAIT is None:
        raise NotCachedError
    try:
        return os.preadv(descriptor, [buffer], offset, _NO_WAIT)
    except OSError as error:  # EAGAIN; EOPNOTSUPP of a file system that does not know
        raise NotCachedError from error


@contextlib.contextmanager
def held(lock: threading.Lock) -> Iterator[None]:
    """With *lock*, which another thread may hold while it reads."""
    if not lock.acquire(blocking=not is_cached_only()):
        raise NotCachedError
    try:
        yield
    finally:
        lock.release()
