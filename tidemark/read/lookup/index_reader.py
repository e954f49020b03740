"""IndexReader: files of the key index for reading, while the pipeline adds to them (docs/format.md §6)."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

from tidemark.errors import StoreContradictionError
from tidemark.format.dispatch_request import U8Array
from tidemark.format.index_file import DEFAULT_ENTRIES, DEFAULT_SLOTS, Header, decode_header, entry_at, file_size
from tidemark.format.index_layout import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE
from tidemark.store.random_access import map_for_random_reads

_ENTRIES_A_SLOT = DEFAULT_ENTRIES // DEFAULT_SLOTS


class IndexTable:
    """One index file, mapped read-only."""

    def __init__(self, path: Path, slots: int) -> None:
        self.path = path
        self._bytes: U8Array = map_for_random_reads(path)
        self.slots = self._bytes[HEADER_SIZE : HEADER_SIZE + SLOT_SIZE * slots]
        self.entries = self._bytes[entry_at(slots, 0) :]

    @property
    def header(self) -> Header:
        """The current header."""
        return decode_header(self._bytes[:HEADER_SIZE].tobytes())


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

    def tables(self) -> list[IndexTable]:
        """Return the current files.

        Raises StoreContradictionError if a file's size does not match the numbers of slots and entries.
        """
        found = self._files()
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
