"""PageCache: the bytes that may be on the disk after a power cut, given the operations so far.

The model assumes no journalling file system. The disk has all synced data, and of the rest any subset of these *units*,
each independently:

    page of a file    its content as it was at some moment since the file's last sync: pages are written back whole, at
                      any time, in any order, so of n writes to one page the first k are there, for any k from 0 to n.
                      A write over several pages may be torn between them. Stores through a mapping are such writes.
                      A failed sync loses the unsynced data, even if later ones succeed.
    size of a file    any of the sizes it had since then; bytes beyond it are lost, bytes never written are zero
    entry of a folder a name created, replaced or removed since its last sync may be so or not yet; the changes of one
                      name happen in order. A rename within a folder is both its names at once; between two folders it
                      is a change of each. A sync of a file does not sync its name; the contents of a folder whose own
                      name was not synced are lost with it.

A page has *page_size* bytes: 4096, or 512 to tear within a page (a disk's sector).
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import NamedTuple

from .operations import (
    Create,
    FailedSync,
    MakeFolder,
    Note,
    Operation,
    RemoveFolder,
    Rename,
    Resize,
    Sync,
    SyncFolder,
    Unlink,
    Write,
)
from .tree import Tree, is_within, renamed

PAGE_SIZE = 4096
_FOLDER = -1

_Entries = dict[str, int | None]


class Unit(NamedTuple):
    """An unsynced unit. writes: the number of its states; 0 to that many writes may be on the disk."""

    file: int  # -1: a folder's entry
    page: int  # -1: the file's size; for an entry its number
    writes: int


class _File:
    def __init__(self, content: bytes) -> None:
        self.synced = content
        self.cached = bytearray(content)
        self.pages: dict[int, list[tuple[int, bytes]]] = {}
        self.sizes: list[int] = []
        self._made: dict[tuple[tuple[int, int], ...], bytes] = {}  # contents since the last change

    def resize(self, size: int) -> None:
        self._made.clear()
        self.sizes.append(size)
        self.cached = self.cached[:size].ljust(size, b"\0")

    def write(self, at: int, data: bytes, page_size: int) -> None:
        self._made.clear()
        self.cached[at : at + len(data)] = data
        while data:
            page = at // page_size
            room = (page + 1) * page_size - at
            self.pages.setdefault(page, []).append((at, data[:room]))
            at, data = at + len(data[:room]), data[room:]

    def content(self, chosen: dict[int, int]) -> bytes:
        """Return the content. chosen: page (or -1, the size) → number of its writes that are there."""
        key = tuple(sorted((page, count) for page, count in chosen.items() if count))
        if key not in self._made:
            self._made[key] = self._make(chosen)
        return self._made[key]

    def _make(self, chosen: dict[int, int]) -> bytes:
        sizes = self.sizes[: chosen.get(-1, 0)]
        size = sizes[-1] if sizes else len(self.synced)
        data = bytearray(self.synced[: min([len(self.synced), *sizes])]).ljust(size, b"\0")
        for page, writes in self.pages.items():
            for at, piece in writes[: chosen.get(page, 0)]:
                end = min(at + len(piece), size)
                if end > at:
                    data[at:end] = piece[: end - at]
        return bytes(data)

    def sync(self) -> None:
        self.synced = self.content({-1: len(self.sizes)} | {page: len(writes) for page, writes in self.pages.items()})
        self.lose()

    def lose(self) -> None:
        """Simulate a failed sync: the pages are clean now, but the disk never got them."""
        self.pages, self.sizes = {}, []
        self._made = {(): self.synced}


class PageCache:
    """Applies operations in order and returns states at any time. Paths that end in one of *ignored* do not count."""

    def __init__(
        self, base: Tree, files: dict[str, int], *, page_size: int = PAGE_SIZE, ignored: Sequence[str] = ()
    ) -> None:
        self._page_size = page_size
        self._ignored = tuple(ignored)
        self._files = {number: _File(base.files[path]) for path, number in files.items()}
        self._entries: _Entries = {**files, **dict.fromkeys(base.folders, _FOLDER)}
        self._current = dict(self._entries)  # as the running system sees it
        self._pending: list[tuple[str, _Entries]] = []  # (folder, its names after an operation)

    def apply(self, operation: Operation) -> None:
        """Apply the next operation."""
        match operation:
            case Create(path, file):
                self._files[file] = _File(b"")
                self._name(path, {path: file})
            case Write(file, at, data):
                self._files[file].write(at, data, self._page_size)
            case Resize(file, size):
                self._files[file].resize(size)
            case Sync(file):
                self._files[file].sync()
            case FailedSync(file):
                self._files[file].lose()
            case Rename(source, target):
                self._rename(source, target)
            case Unlink(path) | RemoveFolder(path):
                self._name(path, {path: None})
            case MakeFolder(path):
                self._name(path, {path: _FOLDER})
            case SyncFolder(folder):
                self._sync_names(folder)
            case Note():
                pass

    def _sync_names(self, folder: str) -> None:
        for parent, names in self._pending:
            if parent == folder:
                self._entries.update(names)
        self._pending = [one for one in self._pending if one[0] != folder]

    def _rename(self, source: str, target: str) -> None:
        """Rename within one folder as one change; between two folders as a change of each."""
        moved = {path: entry for path, entry in self._current.items() if is_within(path, source)}
        removed: _Entries = dict.fromkeys(moved)
        added = renamed(moved, source, target)
        if os.path.dirname(source) == os.path.dirname(target):
            self._name(target, removed | added)
        else:
            self._name(target, added)
            self._name(source, removed)

    def _name(self, path: str, names: _Entries) -> None:
        self._current.update(names)
        if not path.endswith(self._ignored):
            self._pending.append((os.path.dirname(path) or ".", names))

    def units(self) -> list[Unit]:
        """Return all unsynced units."""
        units = [Unit(-1, number, 1) for number in range(len(self._pending))]
        named = {file for file in (*self._entries.values(), *self._current.values()) if file is not None}
        for number, file in self._files.items():
            if number in named:  # a file without a name cannot come back
                units += [Unit(number, page, len(writes)) for page, writes in file.pages.items()]
                units += [Unit(number, -1, len(file.sizes))] * bool(file.sizes)
        return units

    def count(self) -> int:
        """Return the number of states, including equal ones."""
        return math.prod(unit.writes + 1 for unit in self.units())

    def count_with(self, operation: Operation) -> int:
        """Return the same after an operation that only adds an unsynced unit; never too small."""
        grown = self.count()
        match operation:
            case Write(file, at, data):
                pages = range(at // self._page_size, (at + len(data) - 1) // self._page_size + 1)
                for page in pages:
                    writes = len(self._files[file].pages.get(page, ()))
                    grown = grown * (writes + 2) // (writes + 1)
            case Resize(file):
                sizes = len(self._files[file].sizes)
                grown = grown * (sizes + 2) // (sizes + 1)
            case _:
                grown *= 2
        return grown

    def state(self, units: list[Unit], choice: Sequence[int]) -> Tree:
        """Return the disk's content if *choice* writes of each unit are there."""
        entries = dict(self._entries)
        undone: set[str] = set()
        by_file: dict[int, dict[int, int]] = {}
        for (file, page, _), chosen in zip(units, choice, strict=True):
            if file >= 0:
                by_file.setdefault(file, {})[page] = chosen
        chosen_entries = [chosen for (file, _, _), chosen in zip(units, choice, strict=True) if file < 0]
        for (_, names), chosen in zip(self._pending, chosen_entries, strict=True):
            if chosen and undone.isdisjoint(names):
                entries.update(names)
            else:
                undone.update(names)
        return self._tree(entries, by_file)

    def everything(self) -> Tree:
        """Return the running system's view, which a killed process leaves."""
        return self._tree(self._current, None)

    def _tree(self, entries: _Entries, chosen: dict[int, dict[int, int]] | None) -> Tree:
        """chosen: by file; None: everything."""
        folders = {"."}
        for path in sorted(path for path, entry in entries.items() if entry == _FOLDER):
            if (os.path.dirname(path) or ".") in folders:
                folders.add(path)
        files = {
            path: bytes(self._files[entry].cached)
            if chosen is None
            else self._files[entry].content(chosen.get(entry, {}))
            for path, entry in sorted(entries.items())
            if entry is not None and entry != _FOLDER and (os.path.dirname(path) or ".") in folders
            if not path.endswith(self._ignored)
        }
        return Tree(files, tuple(sorted(folders - {"."})))
