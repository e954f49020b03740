"""A run of equally sized files for many reading threads, while other processes add and delete files.

The address space is that of `tidemark.store.mapped_file_queue`; what differs is life time: a descriptor lives as
long as somebody reads from it, and a look at the folder happens only when a file is missed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.format.dispatch_request import U8Array
from tidemark.read.cached import pread, pread_into
from tidemark.store.mapped_file_queue import NAME_LENGTH, file_name
from tidemark.store.open_file import OpenFile


class Listing(NamedTuple):
    """What the folders held when they were looked at. Starts ascend; file_size is 0 without files."""

    starts: tuple[int, ...] = ()
    file_size: int = 0

    @property
    def end(self) -> int:
        """Where the last file ends; 0 without files."""
        return self.starts[-1] + self.file_size if self.starts else 0


class FileRun:
    """The files of one or several folders as one address space (format.md §1), read only. Safe for several threads."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self._places: dict[int, Path] = {}  # start → path
        self._listing = Listing()
        self._ends: tuple[str, list[str]] = ("", [])  # the first file, and where one behind the last would be
        self._open: dict[int, OpenFile] = {}
        self.refresh()

    # -- the files ------------------------------------------------------------------------------------------------

    def refresh(self) -> Listing:
        """Look at the folders.

        raises StoreContradictionError when files differ in size, CorruptStoreError when they do not fit together
        """
        found = sorted(entry for folder in self.folders for entry in _files_of(folder))
        if found and found[-1][1] == 0:  # being made
            found.pop()
        self._places = {start: path for start, _, path in found}
        self._listing = Listing(tuple(start for start, *_ in found), found[0][1] if found else 0)
        for start, size, path in found:
            self._require_fit(start, size, path)
        if found:
            behind = file_name(self._listing.end)
            self._ends = (str(found[0][2]), [os.path.join(folder, behind) for folder in self.folders])
        for gone in self._open.keys() - set(self._listing.starts):
            self._open.pop(gone, None)
        return self._listing

    def _require_fit(self, start: int, size: int, path: Path) -> None:
        if size != self._listing.file_size:
            raise StoreContradictionError(
                f"{path} has {size} bytes, its neighbours {self._listing.file_size}", path=str(path), size=size
            )
        if size == 0:
            raise CorruptStoreError(f"{path} is empty, and others follow it", path=str(path))
        if start % size:
            raise CorruptStoreError(f"{path} does not start at a multiple of its size", path=str(path))
        if path != self._places[start]:
            raise CorruptStoreError(f"{path} lies in another folder, too", path=str(path))

    def listing(self) -> Listing:
        """The files that are there now. Costs a few `stat` calls as long as nothing has changed at either end."""
        listing = self._listing
        if not listing.starts:
            return self.refresh()
        first, behind = self._ends
        if not os.path.exists(first) or any(map(os.path.exists, behind)):
            return self.refresh()
        return listing

    def let_go_of_deleted(self) -> None:
        """Close files that have been deleted: until then the disk does not get their place back."""
        if self._open:
            self.listing()

    @property
    def known(self) -> Listing:
        """The files as last seen."""
        return self._listing

    def _path(self, start: int) -> Path:
        """Where a file was seen, else where it is now, or would be."""
        seen = self._places.get(start)
        if seen is not None:
            return seen
        *others, last = (folder / file_name(start) for folder in self.folders)
        return next((path for path in others if path.exists()), last)

    def _opened(self, start: int) -> OpenFile:
        """FileNotFoundError when it is gone."""
        found = self._open.get(start)
        if found is None or found.is_deleted:
            self._open.pop(start, None)
            found = self._open[start] = OpenFile(os.open(self._path(start), os.O_RDONLY | os.O_CLOEXEC))
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
        return pread(file.descriptor, min(length, start + size - offset), offset - start)

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
            got = pread_into(file.descriptor, buffer[done:], offset - start + done)
            if got == 0:
                return False
            done += got
        return True


def _files_of(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """(start, size, path) of each file that is named as one of a run, in any order.

    One that goes meanwhile is left out, and only that one.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.isdigit() and len(entry.name) == NAME_LENGTH:
                    with contextlib.suppress(FileNotFoundError):
                        yield int(entry.name), entry.stat().st_size, Path(entry.path)
    except FileNotFoundError:
        return
