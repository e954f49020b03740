"""FileRun: a run of equally sized files for many reading threads, while other processes add and delete files.

The address space is that of `tidemark.store.mapped_file_queue`. Unlike there, a descriptor stays open while a reader
uses it, and the folder is read only if a file is not found.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.format.dispatch_request import U8Array
from tidemark.read.cached import pread, pread_into
from tidemark.read.look import is_there, note_there
from tidemark.store.mapped_file_queue import NAME_LENGTH, file_name
from tidemark.store.open_file import OpenFile

StrPath = str | os.PathLike[str]


class Listing(NamedTuple):
    """Files at the time of the last look at the folders. Starts ascend; file_size is 0 without files."""

    starts: tuple[int, ...] = ()
    file_size: int = 0

    @property
    def end(self) -> int:
        """End of the last file; 0 without files."""
        return self.starts[-1] + self.file_size if self.starts else 0


class _Ends(NamedTuple):
    """Paths of a listing's first file, and of the file that may follow its last one: one in each folder."""

    listing: Listing
    first: str
    behind: list[str]


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
    """Files of one or more folders as one address space (format.md §1), read-only. Thread-safe.

    is_lazy  read the folders at the first use instead of now
    """

    def __init__(self, *folders: StrPath, is_lazy: bool = False) -> None:
        self._names = [os.fspath(folder) for folder in folders]  # a Path would be converted at each use
        self._places: dict[int, str] = {}  # start → path
        self._listing = Listing()
        self._ends = _Ends(self._listing, "", [])  # of a listing; made at the second use of it
        self._open: dict[int, OpenFile] = {}
        self._is_listed = False
        if not is_lazy:
            self.refresh()

    # -- the files ------------------------------------------------------------------------------------------------

    def refresh(self) -> Listing:
        """Read the folders. Other threads may do so at the same time; each checks the files that it has found itself.

        Raises StoreContradictionError if files differ in size, CorruptStoreError if they do not form a run.
        """
        found: list[tuple[int, int, str]] = []
        for folder in self._names:
            found += _files_of(folder)
        found.sort()
        if found and found[-1][1] == 0:  # being created
            found.pop()
        listing = Listing(tuple([start for start, _, _ in found]), found[0][1] if found else 0)
        places = {start: path for start, _, path in found}
        for start, size, path in found:
            _require_fit(start, size, path, listing.file_size, places)
        self._places, self._listing = places, listing
        for gone in self._open.keys() - places.keys() if self._open else ():
            self._open.pop(gone, None)
        self._is_listed = True
        return listing

    def listing(self) -> Listing:
        """Return the current files. Costs one system call, and one per folder, if the run has not changed."""
        listing = self._listing
        if not listing.starts:
            return self.refresh()
        ends = self._ends
        if ends.listing is not listing:
            ends = self._ends = self._ends_of(listing)
        if not os.access(ends.first, os.F_OK):
            return self.refresh()
        for path in ends.behind:
            if os.access(path, os.F_OK):
                return self.refresh()
        return listing

    def _ends_of(self, listing: Listing) -> _Ends:
        behind = file_name(listing.end)
        return _Ends(listing, self._path(listing.starts[0]), [os.path.join(folder, behind) for folder in self._names])

    def close_deleted(self) -> None:
        """Close deleted files; until then the disk does not free their space."""
        if self._open:
            self.listing()

    @property
    def known(self) -> Listing:
        """The files as last seen."""
        return self._listing if self._is_listed else self.refresh()

    def _path(self, start: int) -> str:
        """Return the file's path: as last seen, otherwise its current or expected one."""
        seen = self._places.get(start)
        if seen is not None:
            return seen
        *others, last = (os.path.join(folder, file_name(start)) for folder in self._names)
        return next((path for path in others if os.path.exists(path)), last)

    def _opened(self, start: int) -> OpenFile:
        """Open the file, or reuse its descriptor. Raises FileNotFoundError if it was deleted."""
        found = self._open.get(start)
        if found is None or not is_there(found):
            self._open.pop(start, None)
            found = note_there(OpenFile(os.open(self._path(start), os.O_RDONLY | os.O_CLOEXEC)))
            self._open[start] = found
        return found

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, offset: int, length: int) -> bytes:
        """Read at most *length* bytes of one file from *offset*, ending at the file's end; b"" if there is no file."""
        size = self.known.file_size
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
        size = self.known.file_size
        if size == 0 or offset % size + length > size:
            return None
        start = offset - offset % size
        try:
            return FileRange(self._opened(start), offset - start, length)
        except FileNotFoundError:
            return None

    def read_into(self, offset: int, buffer: U8Array) -> bool:
        """Fill *buffer* with bytes of one file from *offset*. Return False if they do not all exist."""
        size = self.known.file_size
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


def _require_fit(start: int, size: int, path: str, file_size: int, places: Mapping[int, str]) -> None:
    """Raise the error of `FileRun.refresh` for a file that does not fit *file_size* or the path of its start."""
    if size != file_size:
        raise StoreContradictionError(f"{path} has {size} bytes, the other files {file_size}", path=path, size=size)
    if size == 0:
        raise CorruptStoreError(f"{path} is empty, but other files follow it", path=path)
    if start % size:
        raise CorruptStoreError(f"{path} does not start at a multiple of its size", path=path)
    if path != places[start]:
        raise CorruptStoreError(f"{path} also exists in another folder", path=path)


def _files_of(folder: str) -> list[tuple[int, int, str]]:
    """Return (start, size, path) of each file whose name fits, in any order.

    Only files that are deleted meanwhile are left out.
    """
    found: list[tuple[int, int, str]] = []
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return found
    for name in names:
        if len(name) == NAME_LENGTH and name.isdigit():
            path = os.path.join(folder, name)
            with contextlib.suppress(FileNotFoundError):
                found.append((int(name), os.stat(path).st_size, path))
    return found
