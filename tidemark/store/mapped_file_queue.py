"""MappedFileQueue: a sequence of equally sized files as one address space of bytes (docs/format.md §1).

File k starts at first + k · file_size and is named by its start offset in 20 digits. A file has its full size from its
creation and does not store where its data ends. Reads use `pread`, so a file that is truncated during a read causes an
error, not a signal.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from pathlib import Path

from tidemark.errors import CorruptStoreError, StoreContradictionError
from tidemark.store.open_file import OpenFile
from tidemark.store.storage import Storage

NAME_LENGTH = 20


def file_name(start_offset: int) -> str:
    """Return the file name of a start offset: 20 digits."""
    return f"{start_offset:0{NAME_LENGTH}d}"


class MappedFileQueue:
    """The files of one folder. Without a `storage` it is read-only.

    Not thread-safe, with two exceptions: reads may run concurrently with one writer, and other threads may create and
    delete files meanwhile.

    sync_names_later  the queue's first file is created without a sync; see `has_unsynced_name`
    """

    def __init__(
        self, folder: Path, file_size: int, storage: Storage | None = None, *, sync_names_later: bool = False
    ) -> None:
        self.folder = folder
        self.file_size = file_size
        self._storage = storage
        self._sync_names_later = sync_names_later
        self.has_unsynced_name = False  # True until the owner has synced the first file and its parent folders
        self._starts: list[int] = []
        # Guards the read-modify-write of `_starts`. Its list is replaced, never mutated, so reads need no lock.
        self._changing = threading.Lock()
        self._open: dict[int, OpenFile] = {}
        self.refresh()

    # -- the files ------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """List the folder again, because other processes create and delete files there.

        A file in the middle may be missing; `covers` returns False there.
        Raises CorruptStoreError for a name that is not a file's start, StoreContradictionError for another size.
        """
        starts: list[int] = []
        sizes: list[int] = []
        for entry in self._entries():
            if entry.is_dir():
                continue
            if not is_file_name(entry.name):
                raise CorruptStoreError(f"a foreign file is in a data folder: {entry.path}", path=entry.path)
            try:
                sizes.append(entry.stat().st_size)
            except FileNotFoundError:  # deleted meanwhile
                continue
            starts.append(int(entry.name))
        if sizes and sizes[-1] == 0:  # its creation was interrupted; it holds nothing
            empty = starts.pop()
            sizes.pop()
            if self._storage is not None:
                self._storage.unlink(self._path(empty))
        for start, size in zip(starts, sizes, strict=True):
            if size != self.file_size:
                raise StoreContradictionError(
                    f"{self._path(start)} has {size} bytes, but the configured file size is {self.file_size}",
                    path=str(self._path(start)),
                    size=size,
                    expected=self.file_size,
                )
            if start % self.file_size:
                path = self._path(start)
                raise CorruptStoreError(f"{path} does not start at a multiple of {self.file_size}", path=str(path))
        for gone in self._open.keys() - set(starts):
            self._open.pop(gone, None)
        self._starts = starts

    @property
    def starts(self) -> list[int]:
        """Start offsets of the files, ascending. Not a copy: do not change it."""
        return self._starts

    @property
    def min_offset(self) -> int:
        """Start of the first file; 0 without files."""
        return self._starts[0] if self._starts else 0

    @property
    def capacity_end(self) -> int:
        """End of the last file; 0 without files."""
        return self._starts[-1] + self.file_size if self._starts else 0

    def file_start(self, offset: int) -> int:
        """Return the start of the file that covers *offset*, even if it does not exist."""
        return offset - offset % self.file_size

    def covers(self, offset: int) -> bool:
        """Return True if the file with the byte at *offset* exists."""
        start = offset - offset % self.file_size
        return start in self._open or start in self._starts

    def _entries(self) -> list[os.DirEntry[str]]:
        """Return the folder's entries, sorted by name."""
        return list_folder(self.folder)

    def _path(self, start: int) -> Path:
        return self.folder / file_name(start)

    def _path_of_new_file(self, start: int) -> Path:
        return self._path(start)

    def folder_of(self, start: int) -> Path:
        """Return the folder of the file that starts at *start*."""
        return self._path(start).parent

    def opened(self, start: int) -> OpenFile:
        """Return the open file that starts at *start*. FileNotFoundError: it is gone."""
        found = self._open.get(start)
        if found is None:
            path = self._path(start)
            found = OpenFile(os.open(path, os.O_RDONLY) if self._storage is None else self._storage.open(path))
            self._open[start] = found
            if not path.exists():  # deleted meanwhile: no later deletion would drop it
                self._open.pop(start, None)
        return found

    def _opened_if_there(self, start: int) -> OpenFile | None:
        try:
            return self.opened(start)
        except FileNotFoundError:
            return None

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, offset: int, length: int) -> bytes:
        """Read at most *length* bytes at *offset*, up to the file's end; b"" without a file."""
        start = self.file_start(offset)
        length = min(length, start + self.file_size - offset)
        file = self._opened_if_there(start) if length > 0 else None
        return b"" if file is None else os.pread(file.descriptor, length, offset - start)

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """Read bytes at *offset* into *buffer*, up to the file's end, and return how many."""
        start = offset - offset % self.file_size
        length = min(len(buffer), start + self.file_size - offset)
        file = (self._open.get(start) or self._opened_if_there(start)) if length > 0 else None
        return 0 if file is None else os.preadv(file.descriptor, [buffer[:length]], offset - start)

    def read_ahead(self, offset: int, length: int) -> None:
        """Ask the kernel to load *length* bytes of one file at *offset* into memory, including holes.

        This is only a hint: no bytes change, and failures are ignored.
        """
        start = self.file_start(offset)
        with contextlib.suppress(OSError):
            file = self._opened_if_there(start) if self.covers(offset) else None
            if file is not None:
                os.posix_fadvise(file.descriptor, offset - start, length, os.POSIX_FADV_WILLNEED)

    def next_data(self, offset: int) -> int | None:
        """Return the first offset at or after *offset*, in its file, that was ever written; None: a hole up to its end.

        The result is coarse: a partly written block counts as data completely.
        """
        start = self.file_start(offset)
        file = self._opened_if_there(start)
        if file is None:
            return None
        try:
            return start + os.lseek(file.descriptor, offset - start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            raise

    # -- writing --------------------------------------------------------------------------------------------------

    def create_file(self, start: int) -> None:
        """Create a file of full size, and its folder. It must be the first file or follow the last one."""
        assert self._storage is not None, "this queue of files only reads"
        assert start % self.file_size == 0, "a file starts at a multiple of the size"
        path = self._path_of_new_file(start)
        if self._sync_names_later and not self._starts:
            self._open[start] = OpenFile(self._storage.create_unsynced(path, self.file_size))
            self.has_unsynced_name = True
        else:
            if self.has_unsynced_name:  # no later file may exist before the first one is durable
                self.flush(self._starts[0])
            self._storage.make_folder(path.parent)
            self._open[start] = OpenFile(self._storage.create(path, self.file_size))
        with self._changing:
            self._starts = sorted({*self._starts, start})

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write *data* at *offset*, across files, which are created as needed."""
        assert self._storage is not None, "this queue of files only reads"
        view = memoryview(data)
        while view:
            start = offset - offset % self.file_size
            room = start + self.file_size - offset
            file = self._open.get(start) or self._opened_or_created(start)
            self._storage.pwrite(file.descriptor, view[:room], offset - start)
            offset += room
            view = view[room:]

    def _opened_or_created(self, start: int) -> OpenFile:
        if not self.covers(start):
            self.create_file(start)
        return self.opened(start)

    def flush(self, start: int) -> None:
        """Sync the file that starts at *start* by fdatasync."""
        assert self._storage is not None, "this queue of files only reads"
        file = self.opened(start)
        self._storage.fdatasync(file.descriptor)

    def zero(self, offset: int, end: int) -> None:
        """Overwrite [offset, end) with zero bytes, in existing files."""
        while offset < end and self.covers(offset):
            room = min(self.file_start(offset) + self.file_size, end) - offset
            self.write(offset, bytes(min(room, 1 << 20)))
            offset += min(room, 1 << 20)

    def delete_file(self, start: int) -> None:
        """Remove one file. It leaves `starts` first; concurrent readers keep their open descriptor."""
        assert self._storage is not None, "this queue of files only reads"
        with self._changing:
            known = start in self._starts
            self._starts = [kept for kept in self._starts if kept != start]
        try:
            self._storage.unlink(self._path(start))
        except OSError:  # it still exists
            with self._changing:
                self._starts = sorted({*self._starts, start} if known else self._starts)
            raise
        self._open.pop(start, None)

    def close(self) -> None:
        """Close all descriptors. They are opened again when needed."""
        self._open.clear()


def size_on_disk(folder: Path) -> int | None:
    """Return the size of the first non-empty data file in *folder*; None if there is none.

    Existing files take precedence over settings.
    """
    with contextlib.suppress(FileNotFoundError):
        for entry in list_folder(folder):
            if is_file_name(entry.name) and entry.is_file() and entry.stat().st_size:
                return entry.stat().st_size
    return None


def list_folder(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of *folder*, sorted by name; [] if it does not exist."""
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []


def is_file_name(name: str) -> bool:
    """Return True if *name* is that of a data file: 20 digits."""
    return len(name) == NAME_LENGTH and name.isascii() and name.isdigit()
