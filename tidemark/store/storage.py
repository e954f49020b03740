"""Storage: the protocol of every write to a store.

All services write through a `Storage`, so a test can record, drop, reorder or fail any write, and a full disk causes an
error, not a signal. Reads are plain `os.pread` and read-only mappings.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import numpy as np

from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.store.open_file import OpenFile

_FULL = (errno.ENOSPC, errno.EDQUOT)


class Words(Protocol):
    """A small, fully allocated, mapped file of aligned 8-byte integers. Only its writes need no system call."""

    def load(self, index: int, /) -> int:
        """Return the unsigned native integer at byte 8 · index."""

    def load_every(self, step: int, start: int, end: int) -> list[int]:
        """Return every *step*-th word from *start* on, below *end*. Each one is loaded as by `load`, in this order."""

    def store(self, index: int, value: int, /) -> None:
        """Store 8 aligned bytes at once: a reader in another process sees the old or the new value, never a mix."""

    def flush(self) -> None:
        """Make the words durable. FlushFailedError: the sync failed."""

    def address(self, index: int) -> int | None:
        """Return the memory address of a word, for a wait on it; None without a mapping."""

    def close(self) -> None:
        """Unmap the file."""


class Storage(Protocol):
    """All operations by which Tidemark changes files."""

    def create(self, path: Path, size: int) -> int:
        """Create a file of *size* zero bytes, durable in its folder, and return its descriptor.

        FileExistsError: it exists. After any other error, no file is left.
        """

    def create_unsynced(self, path: Path, size: int) -> int:
        """Create a file as `create` does, and its folders. It is durable once it and its parent folders are synced."""

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable. FlushFailedError: the sync failed."""

    def open(self, path: Path) -> int:
        """Open an existing file for reads and writes and return its descriptor."""

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        """Write all of *data*. DiskFullError: there is no room; the bytes written until then are undefined."""

    def fdatasync(self, descriptor: int) -> None:
        """Make a file's bytes durable. FlushFailedError: the sync failed and the pages are lost; never retry."""

    def truncate(self, descriptor: int, size: int) -> None:
        """Set a file's size."""

    def rename(self, source: Path, target: Path) -> None:
        """Replace *target* atomically, and make that durable in its folder."""

    def unlink(self, path: Path) -> None:
        """Remove a file, durably."""

    def make_folder(self, path: Path) -> None:
        """Create a folder and its parents, durably."""

    def words(self, path: Path, size: int) -> Words:
        """Map a file of *size* bytes as words. A missing file is created and allocated."""


class MappedWords:
    """Words in a mapping. Only the file's owner may map it `writable`."""

    def __init__(self, path: Path, size: int, *, writable: bool) -> None:
        self._file = OpenFile(os.open(path, os.O_RDWR if writable else os.O_RDONLY))
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        self._mapping = mmap.mmap(self._file.descriptor, size, access=access)
        self._view = memoryview(self._mapping)
        self._words = self._view.cast("Q")
        # The view's own methods: each message causes dozens of loads and stores.
        self.load: Callable[[int], int] = self._words.__getitem__
        self.store: Callable[[int, int], None] = self._words.__setitem__
        self._address = int(np.frombuffer(self._mapping, np.uint8).ctypes.data)

    def load_every(self, step: int, start: int, end: int) -> list[int]:
        return self._words[start:end:step].tolist()

    def flush(self) -> None:
        try:  # the same as msync(MS_SYNC), but mmap.flush would hold the GIL during the sync
            os.fdatasync(self._file.descriptor)
        except OSError as error:
            raise FlushFailedError(f"fdatasync of mapped words failed: {error}", errno=error.errno) from error

    def address(self, index: int) -> int | None:
        return self._address + 8 * index

    def close(self) -> None:
        self._words.release()
        self._view.release()
        self._mapping.close()
        del self._file


class DiskStorage:
    """Storage on the real disk."""

    def create(self, path: Path, size: int) -> int:
        descriptor = self._create(path, size)
        try:
            _fsync(descriptor)
            _fsync_folder(path.parent)
        except BaseException:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return descriptor

    def create_unsynced(self, path: Path, size: int) -> int:
        with _reporting_full_disk():
            path.parent.mkdir(parents=True, exist_ok=True)
        return self._create(path, size)

    def _create(self, path: Path, size: int) -> int:
        with _reporting_full_disk():
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with _reporting_full_disk():
                os.ftruncate(descriptor, size)
        except BaseException:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return descriptor

    def sync_folder(self, path: Path) -> None:
        _fsync_folder(path)

    def open(self, path: Path) -> int:
        return os.open(path, os.O_RDWR)

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        view = memoryview(data)
        try:
            while view:
                written = os.pwrite(descriptor, view, at)
                view = view[written:]
                at += written
        except OSError as error:  # no context manager: it costs as much as a small write
            _raise_if_full(error)
            raise

    def fdatasync(self, descriptor: int) -> None:
        try:
            os.fdatasync(descriptor)
        except OSError as error:
            raise FlushFailedError(f"fdatasync failed: {error}", errno=error.errno) from error

    def truncate(self, descriptor: int, size: int) -> None:
        with _reporting_full_disk():
            os.ftruncate(descriptor, size)

    def rename(self, source: Path, target: Path) -> None:
        with _reporting_full_disk():
            source.replace(target)
        _fsync_folder(target.parent)
        if source.parent != target.parent:
            _fsync_folder(source.parent)

    def unlink(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        _fsync_folder(path.parent)

    def make_folder(self, path: Path) -> None:
        if path.is_dir():
            return
        self.make_folder(path.parent)
        with _reporting_full_disk():
            path.mkdir(exist_ok=True)
        _fsync_folder(path.parent)

    def words(self, path: Path, size: int) -> Words:
        if not _is_allocated(path, size):
            with _reporting_full_disk():
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                with _reporting_full_disk():
                    os.ftruncate(descriptor, size)
                    os.posix_fallocate(descriptor, 0, size)
                _fsync(descriptor)
            finally:
                os.close(descriptor)
            _fsync_folder(path.parent)
        return MappedWords(path, size, writable=True)


def _is_allocated(path: Path, size: int) -> bool:
    """Return True if the file exists without holes.

    A broker's checkpoint may have holes. If the disk is full, a mapped write to a hole kills the process by a signal.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return status.st_size == size and status.st_blocks * 512 >= size


@contextlib.contextmanager
def _reporting_full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _raise_if_full(error)
        raise


def _raise_if_full(error: OSError) -> None:
    if error.errno in _FULL:
        raise DiskFullError(f"the disk is full: {error.strerror}", errno=error.errno) from error


def _fsync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        raise FlushFailedError(f"fsync failed: {error}", errno=error.errno) from error


def _fsync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(
    storage: Storage,
    path: Path,
    data: bytes,
    *,
    keep_previous: bool = True,
    first: Mapping[Path, bytes] = MappingProxyType({}),
) -> None:
    """Write a small file so that after any crash the complete old or new content exists.

    first: other files to replace, which are renamed before this one.

    The previous content stays as ``<name>.bak`` (RocketMQ reads it, too). All files are written under temporary names
    and synced before the first rename, so a full disk changes nothing. Only for folders of small files, never for a
    data folder.
    """
    backup = path.with_name(path.name + ".bak")
    new = {**first, path: data}
    if keep_previous and path.exists():
        new[backup] = path.read_bytes()
    for target, content in new.items():
        _write_temporary(storage, target, content)
    for target in new:
        storage.rename(_temporary_path(target), target)


def _temporary_path(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")


def _write_temporary(storage: Storage, path: Path, data: bytes) -> None:
    temporary = _temporary_path(path)
    if temporary.exists():
        storage.unlink(temporary)
    descriptor = storage.create(temporary, 0)
    try:
        storage.pwrite(descriptor, data, 0)
        storage.fdatasync(descriptor)
    finally:
        os.close(descriptor)
