"""IndexReader: files of the key index for reading, while the pipeline adds to them (docs/format.md §6)."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidemark.errors import StoreContradictionError
from tidemark.format.dispatch_request import U8Array
from tidemark.format.index_file import (
    ANY_TIME,
    DEFAULT_ENTRIES,
    DEFAULT_SLOTS,
    Header,
    decode_header,
    entry_at,
    file_size,
    find_cached,
    oldest_entries,
)
from tidemark.format.index_layout import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from tidemark.read.cached import NotCachedError, is_cached_only
from tidemark.store.open_file import OpenFile
from tidemark.store.random_access import map_for_random_reads

_ENTRIES_A_SLOT = DEFAULT_ENTRIES // DEFAULT_SLOTS
_MOST_IN_PLACE = 32  # entries of a chain that an event loop looks at, and offsets that it finds
_NO_END = 1 << 62
_SETTLED_NS = 2_000_000_000  # a folder's time that is so old differs from that of any later change

_Folders = tuple[tuple[int, int] | None, ...]  # inode and time of the last change of each folder; None: there is none


class IndexTable:
    """One index file, mapped read-only."""

    def __init__(self, path: Path, slots: int) -> None:
        self.path = path
        self._bytes: U8Array = map_for_random_reads(path)
        self.slots = self._bytes[HEADER_SIZE : HEADER_SIZE + SLOT_SIZE * slots]
        self.entries = self._bytes[entry_at(slots, 0) :]
        self._n_slots = slots
        self._file = OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    @property
    def header(self) -> Header:
        """The current header."""
        return decode_header(self._bytes[:HEADER_SIZE].data)

    def oldest(
        self, key_hash: int, *, after: int, below: int, limit: int, least_ms: int = ANY_TIME
    ) -> tuple[list[int], bool]:
        """Return what `oldest_entries` finds, which may wait for a disk."""
        offsets, more = oldest_entries(
            self.slots,
            self.entries,
            self.header,
            key_hash=key_hash,
            after=after,
            below=below,
            limit=limit,
            least_ms=least_ms,
        )
        return offsets.tolist(), more

    def require_cached(self, key_hash: int) -> None:
        """Within `cached_only`, raise NotCachedError unless the header and the key's chain are in memory and short.

        The kernels read mapped pages, and a page that is not in memory would stop the thread.
        """
        if is_cached_only():
            _find_cached(np.array([self.row]), key_hash, after=-1, below=_NO_END, least_ms=1)

    @property
    def row(self) -> tuple[int, int, int]:
        """The file's row for `index_file.find_cached`."""
        return self._file.descriptor, self._n_slots, len(self.entries) // ENTRY_SIZE


def _find_cached(files: NDArray[np.int64], key_hash: int, *, after: int, below: int, least_ms: int) -> list[int]:
    found = find_cached(files, key_hash=key_hash, after=after, below=below, least_ms=least_ms, most=_MOST_IN_PLACE)
    if found is None:
        raise NotCachedError
    return found


class IndexReader:
    """All index files of a store, oldest first. Thread-safe.

    more            second folder, for an attached store: keys that its broker does not index
    slots, entries  numbers per file; None: derived from the file size with the default of four entries per slot
    """

    def __init__(
        self, folder: Path, *, more: Path | None = None, slots: int | None = None, entries: int | None = None
    ) -> None:
        self._folders = [folder] if more is None else [folder, more]
        self._slots = slots
        self._entries = entries
        self._tables: dict[tuple[str, int, str], IndexTable] = {}  # name, inode, path
        self._lock = threading.Lock()
        self._listed: tuple[_Folders, list[IndexTable]] | None = None  # one assignment: several threads read it
        self._rows: tuple[list[IndexTable], NDArray[np.int64]] | None = None  # likewise

    def find_cached(self, key_hash: int, *, after: int, below: int, least_ms: int) -> list[int]:
        """Return what `oldest_entries` finds in all files together. Only for a thread that must not wait.

        Raises NotCachedError if the files have changed, or if not all that is needed is in memory, or if it is much.
        """
        tables, known = self.tables(), self._rows
        if known is None or known[0] is not tables:
            rows = np.array([table.row for table in tables], np.int64).reshape(-1, 3)
            self._rows = known = tables, rows
        return _find_cached(known[1], key_hash, after=after, below=below, least_ms=least_ms)

    def tables(self) -> list[IndexTable]:
        """Return the current files. The list is shared: do not change it.

        Raises StoreContradictionError if a file's size does not match the numbers of slots and entries, and
        NotCachedError within `cached_only` if the folders have changed.
        """
        folders, now_ns = tuple(map(_change_of, self._folders)), time.time_ns()
        listed = self._listed
        if listed is not None and listed[0] == folders:
            return listed[1]
        if is_cached_only():
            raise NotCachedError
        found = self._files()
        tables = self._open(found)
        is_settled = all(change is None or change[1] < now_ns - _SETTLED_NS for change in folders)
        if is_settled and all(found.values()):  # the growth of an empty file does not change its folder
            self._listed = folders, tables
        return tables

    def _open(self, found: dict[tuple[str, int, str], int]) -> list[IndexTable]:
        with self._lock:
            for gone in self._tables.keys() - found.keys():
                del self._tables[gone]
            for key in sorted(found):
                if key not in self._tables and found[key] > 0:
                    path = Path(key[2])
                    with contextlib.suppress(FileNotFoundError):  # expired meanwhile
                        self._tables[key] = IndexTable(path, self._slots_of(path, found[key]))
            return [self._tables[key] for key in sorted(self._tables)]

    def _files(self) -> dict[tuple[str, int, str], int]:
        """Return (name, inode, path) → size. Only files that are deleted meanwhile are left out."""
        found: dict[tuple[str, int, str], int] = {}
        for folder in self._folders:
            with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(FileNotFoundError):
                        if entry.name.isdigit() and entry.is_file():
                            status = entry.stat()
                            found[entry.name, status.st_ino, entry.path] = status.st_size
        return found

    def _slots_of(self, path: Path, size: int) -> int:
        slots = self._slots or (size - HEADER_SIZE) // (SLOT_SIZE + ENTRY_SIZE * _ENTRIES_A_SLOT)
        entries = self._entries or (size - entry_at(slots, 0)) // ENTRY_SIZE
        if size != file_size(slots, entries) or slots < 1:
            raise StoreContradictionError(
                f"{path} has {size} bytes, which does not match {slots} slots and {entries} entries",
                path=str(path),
                size=size,
            )
        return slots


def _change_of(folder: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns
