"""A run of equally sized files for many reading threads, while other processes add and delete files.

The address space is that of `tidemark.store.mapped_file_queue`; what differs is life time: a descriptor lives as
long as somebody reads from it, and a look at the folder happens only when a file is missed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.format.dispatch_request import U8Array
from tidemark.store.mapped_file_queue import NAME_LENGTH, file_name


class _OpenFile:
    """A descriptor that closes when the last reader has let go of it."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    @property
    def is_deleted(self) -> bool:
        """Whether the name has gone, or is another file's by now."""
        return os.fstat(self.descriptor).st_nlink == 0

    def __del__(self, close: Callable[[int], None] = os.close) -> None:  # bound: `os` may be gone at exit
        if hasattr(self, "descriptor"):
            close(self.descriptor)


class Listing(NamedTuple):
    """What the folder held when it was looked at. Starts ascend; file_size is 0 without files."""

    starts: tuple[int, ...] = ()
    file_size: int = 0

    @property
    def end(self) -> int:
        """Where the last file ends; 0 without files."""
        return self.starts[-1] + self.file_size if self.starts else 0


class FileRun:
    """The files of one folder, read only. Safe for several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listing = Listing()
        self._open: dict[int, _OpenFile] = {}
        self.refresh()

    # -- the files ------------------------------------------------------------------------------------------------

    def refresh(self) -> Listing:
        """Look at the folder.

        raises StoreContradictionError when files differ in size, CorruptStoreError when they do not fit together
        """
        found: list[tuple[int, int]] = []
        try:
            with os.scandir(self.folder) as entries:
                found += [
                    (int(entry.name), entry.stat().st_size)
                    for entry in entries
                    if entry.name.isdigit() and len(entry.name) == NAME_LENGTH
                ]
        except FileNotFoundError:
            pass
        found.sort()
        if found and found[-1][1] == 0:  # being made
            found.pop()
        self._listing = Listing(tuple(start for start, _ in found), found[0][1] if found else 0)
        for start, size in found:
            self._require_fit(start, size)
        for gone in self._open.keys() - set(self._listing.starts):
            self._open.pop(gone, None)
        return self._listing

    def _require_fit(self, start: int, size: int) -> None:
        path = self.folder / file_name(start)
        if size != self._listing.file_size:
            raise StoreContradictionError(
                f"{path} has {size} bytes, its neighbours {self._listing.file_size}", path=str(path), size=size
            )
        if start % size:
            raise CorruptStoreError(f"{path} does not start at a multiple of its size", path=str(path))

    def listing(self) -> Listing:
        """The files that are there now. Costs two `stat` calls as long as nothing has changed at either end."""
        listing = self._listing
        if not listing.starts:
            return self.refresh()
        following = self.folder / file_name(listing.starts[-1] + listing.file_size)
        if not (self.folder / file_name(listing.starts[0])).exists() or following.exists():
            return self.refresh()
        return listing

    @property
    def known(self) -> Listing:
        """The files as last seen."""
        return self._listing

    def _opened(self, start: int) -> _OpenFile:
        """FileNotFoundError when it is gone."""
        found = self._open.get(start)
        if found is None or found.is_deleted:
            self._open.pop(start, None)
            found = self._open[start] = _OpenFile(self.folder / file_name(start))
        return found

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of one file from *offset*: at most *length*, ending at the file's end; b"" where there is no file."""
        size = self._listing.file_size
        if size == 0 or length <= 0:
            return b""
        start = offset - offset % size
        try:
            file = self._opened(start)
        except FileNotFoundError:
            return b""
        return os.pread(file.descriptor, min(length, start + size - offset), offset - start)

    def read_into(self, offset: int, buffer: U8Array) -> bool:
        """Fill *buffer* with bytes of one file from *offset*; False when they are not all there."""
        size = self._listing.file_size
        if size == 0 or offset % size + len(buffer) > size:
            return False
        start = offset - offset % size
        try:
            file = self._opened(start)
        except FileNotFoundError:
            return False
        done = 0
        while done < len(buffer):
            got = os.preadv(file.descriptor, [buffer.data[done:]], offset - start + done)
            if got == 0:
                return False
            done += got
        return True
