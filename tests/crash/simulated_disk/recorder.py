"""Recorder: the services' own system calls, as they happen.

It is below `DiskStorage`, in place of the functions of `os` that change files, so that it records the real storage's
steps, including calls that bypass the storage. Mapped stores, which are no system calls, are recorded by wrapping
`Words`. Calls run one at a time: an order that the kernel could have seen.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tidemark.store.storage import Storage, Words

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
from .tree import Tree, read_tree, renamed

_UNUSED = ("write", "writev", "pwritev", "truncate", "link", "symlink", "sendfile", "copy_file_range", "removedirs")


class Recorder:
    """Records while it is entered. base: the initial content of *root*; trace: the operations since.

    after: the record of an earlier life of the store, and the length of its trace at the kill. Its unsynced data is
    still
    unsynced: base and trace are that life's, and continue.
    """

    def __init__(self, root: Path, *, after: tuple[Recorder, int] | None = None) -> None:
        self.root = root
        tree = read_tree(root)
        if after is None:
            self.base: Tree = tree
            self.files = {path: number for number, path in enumerate(sorted(tree.files))}
            self.trace: list[Operation] = []
            self._by_name = dict(self.files)
        else:
            earlier, prefix = after
            self.base, self.files, self.trace = earlier.base, earlier.files, earlier.trace[:prefix]
            self._by_name = names_after(self.files, self.trace)
        numbers = {number: path for path, number in self._by_name.items()}
        count = 1 + max([*self.files.values(), *(o.file for o in self.trace if isinstance(o, Create))], default=-1)
        self._sizes = [len(tree.files.get(numbers.get(number, ""), b"")) for number in range(count)]
        self._descriptors: dict[int, int | str] = {}  # of a file: its number; of a folder: its path
        self._lock = threading.RLock()
        self._real: dict[str, Any] = {}

    def before(self, call: str, place: str | None, length: int = 0) -> int:
        """Return the number of bytes that the next call may write. For faults: may raise OSError.

        call: create, pwrite, resize, sync, rename, unlink, mkdir or rmdir; place: None for a file without a name
        """
        return length

    def _name_of(self, file: int) -> str | None:
        return next((path for path, number in self._by_name.items() if number == file), None)

    # -- replacements of os --------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        for name, stand_in in {
            "open": self._open,
            "close": self._close,
            "pwrite": self._pwrite,
            "ftruncate": self._ftruncate,
            "posix_fallocate": self._fallocate,
            "fsync": self._fsync,
            "fdatasync": self._fsync,
            "replace": self._rename,
            "rename": self._rename,
            "unlink": self._unlink,
            "remove": self._unlink,
            "mkdir": self._mkdir,
            "rmdir": self._rmdir,
        }.items():
            self._real[name] = getattr(os, name)
            setattr(os, name, stand_in)
        for name in _UNUSED:
            self._real[name] = getattr(os, name)
            setattr(os, name, self._refusing(name))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)

    def _refusing(self, name: str) -> Callable[..., Any]:
        def refuse(first: Any, *rest: Any, **named: Any) -> Any:
            known = isinstance(first, int) and first in self._descriptors
            assert not known and self._place(first) is None, f"os.{name} is not recorded"
            return self._real[name](first, *rest, **named)

        return refuse

    def _place(self, path: Any) -> str | None:
        """Return the path below the root; None for one outside, and for a descriptor."""
        if isinstance(path, int):
            return None
        text = os.path.abspath(os.fsdecode(path))
        root = str(self.root)
        if text == root:
            return "."
        return text[len(root) + 1 :] if text.startswith(root + os.sep) else None

    def _open(self, path: Any, flags: int, mode: int = 0o777, **named: Any) -> int:
        place = self._place(path)
        if place is None:
            return int(self._real["open"](path, flags, mode, **named))
        with self._lock:
            is_new = not os.path.lexists(path)
            if is_new and flags & os.O_CREAT:
                self.before("create", place)
            descriptor = int(self._real["open"](path, flags, mode, **named))
            if os.path.isdir(path):
                self._descriptors[descriptor] = place
                return descriptor
            if is_new:
                self._by_name[place] = len(self._sizes)
                self.trace.append(Create(place, len(self._sizes)))
                self._sizes.append(0)
            assert not flags & (os.O_TRUNC | os.O_APPEND), "not recorded"
            self._descriptors[descriptor] = self._by_name[place]
            return descriptor

    def _close(self, descriptor: int) -> None:
        with self._lock:
            self._descriptors.pop(descriptor, None)
            self._real["close"](descriptor)

    def _file(self, descriptor: int) -> int | None:
        found = self._descriptors.get(descriptor)
        return found if isinstance(found, int) else None

    def _pwrite(self, descriptor: int, data: Any, at: int, **named: Any) -> int:
        with self._lock:
            file = self._file(descriptor)
            if file is None:
                return int(self._real["pwrite"](descriptor, data, at, **named))
            view = memoryview(data).cast("B")
            view = view[: self.before("pwrite", self._name_of(file), len(view))]
            written = int(self._real["pwrite"](descriptor, view, at, **named))
            self._wrote(file, at, bytes(view[:written]))
            return written

    def _wrote(self, file: int, at: int, data: bytes) -> None:
        if at + len(data) > self._sizes[file]:
            self._resized(file, at + len(data))
        self.trace.append(Write(file, at, data))

    def _resized(self, file: int, size: int) -> None:
        self._sizes[file] = size
        self.trace.append(Resize(file, size))

    def _ftruncate(self, descriptor: int, size: int) -> None:
        with self._lock:
            file = self._file(descriptor)
            if file is not None:
                self.before("resize", self._name_of(file))
            self._real["ftruncate"](descriptor, size)
            if file is not None and size != self._sizes[file]:
                self._resized(file, size)

    def _fallocate(self, descriptor: int, at: int, length: int) -> None:
        with self._lock:
            self._real["posix_fallocate"](descriptor, at, length)
            file = self._file(descriptor)
            if file is not None and at + length > self._sizes[file]:
                self._resized(file, at + length)

    def _fsync(self, descriptor: int) -> None:
        with self._lock:  # nothing is synced to a memory file system: the model decides what reached the disk
            found = self._descriptors.get(descriptor)
            if isinstance(found, int):
                try:
                    self.before("sync", self._name_of(found))
                except OSError:
                    self.trace.append(FailedSync(found))
                    raise
                self.trace.append(Sync(found))
            elif found is not None:
                self.trace.append(SyncFolder(found))

    def _rename(self, source: Any, target: Any, **named: Any) -> None:
        with self._lock:
            old, new = self._place(source), self._place(target)
            if old is not None:
                self.before("rename", new)
            self._real["replace"](source, target, **named)
            if old is not None and new is not None:
                self._by_name = renamed(self._by_name, old, new)
                self.trace.append(Rename(old, new))

    def _unlink(self, path: Any, **named: Any) -> None:
        with self._lock:
            place = self._place(path)
            if place is not None and place in self._by_name:
                self.before("unlink", place)
            self._real["unlink"](path, **named)
            if place is not None:
                self._by_name.pop(place)
                self.trace.append(Unlink(place))

    def _mkdir(self, path: Any, mode: int = 0o777, **named: Any) -> None:
        with self._lock:
            place = self._place(path)
            if place is not None:
                self.before("mkdir", place)
            self._real["mkdir"](path, mode, **named)
            if place is not None:
                self.trace.append(MakeFolder(place))

    def _rmdir(self, path: Any, **named: Any) -> None:
        with self._lock:
            self._real["rmdir"](path, **named)
            place = self._place(path)
            if place is not None:
                self.trace.append(RemoveFolder(place))

    # -- apart from system calls --------------------------------------------------------------------------------------

    def note(self, what: str, about: object = None) -> None:
        """Record a fact that clients know from here on."""
        with self._lock:
            self.trace.append(Note(what, about))

    def stored(self, path: Path, words: Words, index: int, value: int) -> None:
        """Record one store through a mapping."""
        with self._lock:
            words.store(index, value)
            place = self._place(path)
            assert place is not None
            self.trace.append(Write(self._by_name[place], 8 * index, value.to_bytes(8, sys.byteorder)))

    def storage(self, inner: Storage) -> Storage:
        """Return *inner* with recorded mapped words."""
        return _RecordedStorage(self, inner)


def names_after(files: dict[str, int], trace: list[Operation]) -> dict[str, int]:
    """Return the file of each name after *trace*."""
    names = dict(files)
    for operation in trace:
        match operation:
            case Create(path, file):
                names[path] = file
            case Rename(source, target):
                names = renamed(names, source, target)
            case Unlink(path):
                names.pop(path)
    return names


class _RecordedStorage:
    """Wraps only words: everything else is recorded as system calls."""

    def __init__(self, recorder: Recorder, inner: Storage) -> None:
        self._recorder = recorder
        self._inner = inner

    def create(self, path: Path, size: int) -> int:
        return self._inner.create(path, size)

    def create_unsynced(self, path: Path, size: int) -> int:
        return self._inner.create_unsynced(path, size)

    def sync_folder(self, path: Path) -> None:
        self._inner.sync_folder(path)

    def open(self, path: Path) -> int:
        return self._inner.open(path)

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        self._inner.pwrite(descriptor, data, at)

    def fdatasync(self, descriptor: int) -> None:
        self._inner.fdatasync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        self._inner.truncate(descriptor, size)

    def rename(self, source: Path, target: Path) -> None:
        self._inner.rename(source, target)

    def unlink(self, path: Path) -> None:
        self._inner.unlink(path)

    def make_folder(self, path: Path) -> None:
        self._inner.make_folder(path)

    def words(self, path: Path, size: int) -> Words:
        return _RecordedWords(self._recorder, path, self._inner.words(path, size))


class _RecordedWords:
    def __init__(self, recorder: Recorder, path: Path, inner: Words) -> None:
        self._recorder = recorder
        self._path = path
        self._inner = inner

    def load(self, index: int) -> int:
        return self._inner.load(index)

    def load_every(self, step: int, start: int, end: int) -> list[int]:
        return self._inner.load_every(step, start, end)

    def store(self, index: int, value: int) -> None:
        self._recorder.stored(self._path, self._inner, index, value)

    def flush(self) -> None:
        self._inner.flush()

    def address(self, index: int) -> int | None:
        return self._inner.address(index)

    def close(self) -> None:
        self._inner.close()
