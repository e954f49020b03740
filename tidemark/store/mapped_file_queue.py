"""A run of equally sized files as one address space of bytes (docs/format.md §1): MappedFileQueue.

File k starts at first + k · file_size and is named by its start offset in 20 digits. Files have their full size from
birth; where the data ends is not written anywhere in them. Reading is by `pread`, so a file that is cut under a reader
is an error and not a signal.
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
    """20 digits."""
    return f"{start_offset:0{NAME_LENGTH}d}"


class MappedFileQueue:
    """The files of one folder. With a `storage` it may write; without one it only reads.

    Not for several threads, except that reads go on beside one writer, and that files may be made and deleted by other
    threads meanwhile.

    sync_names_later  the first file of all is made without a sync: see `has_unsynced_name`
    """

    def __init__(
        self, folder: Path, file_size: int, storage: Storage | None = None, *, sync_names_later: bool = False
    ) -> None:
        self.folder = folder
        self.file_size = file_size
        self._storage = storage
        self._sync_names_later = sync_names_later
        self.has_unsynced_name = False  # until the owner has synced the first file, and the folders above it
        self._starts: list[int] = []
        self._changing = threading.Lock()  # of `_starts`, whose list is replaced, never changed
        self._open: dict[int, OpenFile] = {}
        self.refresh()

    # -- the files ------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look at the folder again: others create and delete files there.

        A file may be missing in the row: `covers` tells.
        raises CorruptStoreError for a name that is no file's start, StoreContradictionError for another size
        """
        starts: list[int] = []
        sizes: list[int] = []
        for entry in self._entries():
            if entry.is_dir():
                continue
            if not is_file_name(entry.name):
                raise CorruptStoreError(f"a foreign file lies in a data folder: {entry.path}", path=entry.path)
            try:
                sizes.append(entry.stat().st_size)
            except FileNotFoundError:  # deleted since
                continue
            starts.append(int(entry.name))
        if sizes and sizes[-1] == 0:  # cut off while it was made; it holds nothing
            empty = starts.pop()
            sizes.pop()
            if self._storage is not None:
                self._storage.unlink(self._path(empty))
        for start, size in zip(starts, sizes, strict=True):
            if size != self.file_size:
                raise StoreContradictionError(
                    f"{self._path(start)} has {size} bytes, the setting says {self.file_size}",
                    path=str(self._path(start)),
                    size=size,
                    expected=self.file_size,
                )
            if start % self.file_size:
                path = self._path(start)
                raise CorruptStoreError(f"{path} starts at no multiple of {self.file_size}", path=str(path))
        for gone in self._open.keys() - set(starts):
            self._open.pop(gone, None)
        self._starts = starts

    @property
    def starts(self) -> list[int]:
        """Start offsets of the files, ascending. Not a copy: do not change it."""
        return self._starts

    @property
    def min_offset(self) -> int:
        """Where the first file starts; 0 without files."""
        return self._starts[0] if self._starts else 0

    @property
    def capacity_end(self) -> int:
        """Where the last file ends; 0 without files."""
        return self._starts[-1] + self.file_size if self._starts else 0

    def file_start(self, offset: int) -> int:
        """Start of the file that covers *offset*, whether it exists or not."""
        return offset - offset % self.file_size

    def covers(self, offset: int) -> bool:
        """Whether a file that is there holds the byte at *offset*."""
        return self.file_start(offset) in self._open or self.file_start(offset) in self._starts

    def _entries(self) -> list[os.DirEntry[str]]:
        """What lies there, by name."""
        return list_folder(self.folder)

    def _path(self, start: int) -> Path:
        return self.folder / file_name(start)

    def _path_of_new_file(self, start: int) -> Path:
        return self._path(start)

    def folder_of(self, start: int) -> Path:
        """Where the file that starts at *start* lies."""
        return self._path(start).parent

    def opened(self, start: int) -> OpenFile:
        """The file that starts at *start*; FileNotFoundError when it is gone."""
        found = self._open.get(start)
        if found is None:
            path = self._path(start)
            found = OpenFile(os.open(path, os.O_RDONLY) if self._storage is None else self._storage.open(path))
            self._open[start] = found
            if not path.exists():  # deleted meanwhile: nobody would let go of it
                self._open.pop(start, None)
        return found

    def _opened_if_there(self, start: int) -> OpenFile | None:
        try:
            return self.opened(start)
        except FileNotFoundError:
            return None

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of one file from *offset*: at most *length*, ending at the file's end; b"" where there is no file."""
        start = self.file_start(offset)
        length = min(length, start + self.file_size - offset)
        file = self._opened_if_there(start) if length > 0 else None
        return b"" if file is None else os.pread(file.descriptor, length, offset - start)

    def read_into(self, offset: int, buffer: memoryview) -> int:
        """Fill *buffer* with bytes of one file from *offset*; returns how many, at most to the file's end."""
        start = self.file_start(offset)
        length = min(len(buffer), start + self.file_size - offset)
        file = self._opened_if_there(start) if length > 0 else None
        return 0 if file is None else os.preadv(file.descriptor, [buffer[:length]], offset - start)

    def read_ahead(self, offset: int, length: int) -> None:
        """Ask the kernel to have *length* bytes of one file from *offset* in memory soon, also those of a hole.

        Only a hint: no bytes change, and nothing is told where it cannot be done.
        """
        start = self.file_start(offset)
        with contextlib.suppress(OSError):
            file = self._opened_if_there(start) if self.covers(offset) else None
            if file is not None:
                os.posix_fadvise(file.descriptor, offset - start, length, os.POSIX_FADV_WILLNEED)

    def next_data(self, offset: int) -> int | None:
        """The first place from *offset* on, in its file, where anything was ever written; None: a hole to its end.

        Coarse: a block that was written to is data wholly.
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
        """A new file of full size; its folder too. Only behind the last one, or the first of all."""
        assert self._storage is not None, "this queue of files only reads"
        assert start % self.file_size == 0, "a file starts at a multiple of the size"
        path = self._path_of_new_file(start)
        if self._sync_names_later and not self._starts:
            self._open[start] = OpenFile(self._storage.create_unsynced(path, self.file_size))
            self.has_unsynced_name = True
        else:
            if self.has_unsynced_name:  # no later file without it
                self.flush(self._starts[0])
            self._storage.make_folder(path.parent)
            self._open[start] = OpenFile(self._storage.create(path, self.file_size))
        with self._changing:
            self._starts = sorted({*self._starts, start})

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write *data* at *offset*, creating files and running over their edges as needed."""
        assert self._storage is not None, "this queue of files only reads"
        view = memoryview(data)
        while len(view):
            start = self.file_start(offset)
            if not self.covers(offset):
                self.create_file(start)
            room = start + self.file_size - offset
            file = self.opened(start)
            self._storage.pwrite(file.descriptor, view[:room], offset - start)
            offset += len(view[:room])
            view = view[room:]

    def flush(self, start: int) -> None:
        """fdatasync of the file that starts at *start*."""
        assert self._storage is not None, "this queue of files only reads"
        file = self.opened(start)
        self._storage.fdatasync(file.descriptor)

    def zero(self, offset: int, end: int) -> None:
        """Overwrite [offset, end) with zero bytes, in files that are there."""
        while offset < end and self.covers(offset):
            room = min(self.file_start(offset) + self.file_size, end) - offset
            self.write(offset, bytes(min(room, 1 << 20)))
            offset += min(room, 1 << 20)

    def delete_file(self, start: int) -> None:
        """Remove one file. First nobody finds it any more; whoever reads it meanwhile still has it."""
        assert self._storage is not None, "this queue of files only reads"
        with self._changing:
            known = start in self._starts
            self._starts = [kept for kept in self._starts if kept != start]
        try:
            self._storage.unlink(self._path(start))
        except OSError:  # it is still there
            with self._changing:
                self._starts = sorted({*self._starts, start} if known else self._starts)
            raise
        self._open.pop(start, None)

    def close(self) -> None:
        """Close all descriptors; they open again when needed."""
        self._open.clear()


def size_on_disk(folder: Path) -> int | None:
    """Size of the first non-empty data file in *folder*; None when there is none.

    Existing files decide over settings.
    """
    with contextlib.suppress(FileNotFoundError):
        for entry in list_folder(folder):
            if is_file_name(entry.name) and entry.is_file() and entry.stat().st_size:
                return entry.stat().st_size
    return None


def list_folder(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in *folder*, by name; nothing where there is none."""
    try:
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return []


def is_file_name(name: str) -> bool:
    """Whether a file of this name is a data file: 20 digits."""
    return len(name) == NAME_LENGTH and name.isascii() and name.isdigit()
