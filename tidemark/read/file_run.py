"""FileRun: a run of equally sized files for many reading threads, while other processes add and delete files.

The address space is that of `tidemark.store.mapped_file_queue`. Unlike there, a descriptor stays open while a reader
uses it, and the folder is read only if a file is not found.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.format.dispatch_request import U8Array
from tidemark.read.cached import pread, pread_into
from tidemark.store.mapped_file_queue import NAME_LENGTH, file_name
from tidemark.store.open_file import OpenFile


class Listing(NamedTuple):
    """Files at the time of the last look at the folders. Starts ascend; file_size is 0 without files."""

    starts: tuple[int, ...] = ()
    file_size: int = 0

    @property
    def end(self) -> int:
        """End of the last file; 0 without files."""
        return self.starts[-1] + self.file_size if self.starts else 0


@dataclass(frozen=True, slots=True)
class FileRange:
    """Bytes of an open file that are not read yet. `len` is their number."""

    file: OpenFile
    offset: int
    size: int

    def __len__(self) -> int:
        return self.size

    def read(self) -> bytes:
        """Return the bytes. Raises OSError if the file has become shorter."""
        data = os.pread(self.file.descriptor, self.size, self.offset)
        while len(data) < self.size:
            more = os.pread(self.file.descriptor, self.size - len(data), self.offset + len(data))
            if not more:
                raise OSError(errno.EIO, f"a file of the store ends before byte {self.offset + self.size}")
            data += more
        return data


class FileRun:
    """Files of one or more folders as one address space (format.md §1), read-only. Thread-safe."""

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self._places: dict[int, Path] = {}  # start → path
        self._listing = Listing()
        self._ends: tuple[str, list[str]] = ("", [])  # the first file, and the possible paths of the next one
        self._open: dict[int, OpenFile] = {}
        self.refresh()

    # -- the files ------------------------------------------------------------------------------------------------

    def refresh(self) -> Listing:
        """Read the folders.

        Raises StoreContradictionError if files differ in size, CorruptStoreError if they do not form a run.
        """
        found = sorted(entry for folder in self.folders for entry in _files_of(folder))
        if found and found[-1][1] == 0:  # being created
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
                f"{path} has {size} bytes, the other files {self._listing.file_size}", path=str(path), size=size
            )
        if size == 0:
            raise CorruptStoreError(f"{path} is empty, but other files follow it", path=str(path))
        if start % size:
            raise CorruptStoreError(f"{path} does not start at a multiple of its size", path=str(path))
        if path != self._places[start]:
            raise CorruptStoreError(f"{path} also exists in another folder", path=str(path))

    def listing(self) -> Listing:
        """Return the current files. Costs one system call, and one per folder, if the run has not changed."""
        listing = self._listing
        if not listing.starts:
            return self.refresh()
        first, behind = self._ends
        if not os.access(first, os.F_OK):
            return self.refresh()
        for path in behind:
            if os.access(path, os.F_OK):
                return self.refresh()
        return listing

    def close_deleted(self) -> None:
        """Close deleted files; until then the disk does not free their space."""
        if self._open:
            self.listing()

    @property
    def known(self) -> Listing:
        """The files as last seen."""
        return self._listing

    def _path(self, start: int) -> Path:
        """Return the file's path: as last seen, otherwise its current or expected one."""
        seen = self._places.get(start)
        if seen is not None:
            return seen
        *others, last = (folder / file_name(start) for folder in self.folders)
        return next((path for path in others if path.exists()), last)

    def _opened(self, start: int) -> OpenFile:
        """Open the file, or reuse its descriptor. Raises FileNotFoundError if it was deleted."""
        found = self._open.get(start)
        if found is None or found.is_deleted:
            self._open.pop(start, None)
            found = self._open[start] = OpenFile(os.open(self._path(start), os.O_RDONLY | os.O_CLOEXEC))
        return found

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, offset: int, length: int) -> bytes:
        """Read at most *length* bytes of one file from *offset*, ending at the file's end; b"" if there is no file."""
        size = self._listing.file_size
        if size == 0 or length <= 0:
            return b""
        start = offset - offset % size
        try:
            file = self._opened(start)
        except FileNotFoundError:
            return b""
        return pread(file.descriptor, min(length, start + size - offset), offset - start)

    def range(self, offset: int, length: int) -> FileRange | None:
        """Return a range of one file without reading it; None if the file does not exist, or is shorter."""
        size = self._listing.file_size
        if size == 0 or offset % size + length > size:
            return None
        start = offset - offset % size
        try:
            return FileRange(self._opened(start), offset - start, length)
        except FileNotFoundError:
            return None

    def read_into(self, offset: int, buffer: U8Array) -> bool:
        """Fill *buffer* with bytes of one file from *offset*. Return False if they do not all exist."""
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
    """Yield (start, size, path) of each file whose name fits, in any order.

    Only files that are deleted meanwhile are left out.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.isdigit() and len(entry.name) == NAME_LENGTH:
                    with contextlib.suppress(FileNotFoundError):
                        yield int(entry.name), entry.stat().st_size, Path(entry.path)
    except FileNotFoundError:
        return
