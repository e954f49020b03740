"""A CommitLog in several folders: one address space, with each file in one of them (docs/format.md §1)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.store.log_folders import LogFolders
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name, list_folder, size_on_disk
from tidemark.store.storage import Storage


def open_log(
    folders: LogFolders,
    file_size: int,
    storage: Storage | None = None,
    *,
    is_full: Callable[[Path], bool] | None = None,
) -> MappedFileQueue:
    """Open the CommitLog in *folders*. is_full: True for a folder in which no file is created if another has room."""
    if len(folders.all) == 1:
        return MappedFileQueue(folders.all[0], file_size, storage)
    return MultiPathMappedFileQueue(folders, file_size, storage, is_full=is_full)


def log_size_on_disk(folders: LogFolders) -> int | None:
    """Return the size of the CommitLog's files; None without files."""
    return next((size for folder in folders.all if (size := size_on_disk(folder)) is not None), None)


class MultiPathMappedFileQueue(MappedFileQueue):
    """The files of several folders, merged by name. RocketMQ has a class of this name."""

    def __init__(
        self,
        folders: LogFolders,
        file_size: int,
        storage: Storage | None = None,
        *,
        is_full: Callable[[Path], bool] | None = None,
    ) -> None:
        self._folders = folders
        self._is_full = is_full or (lambda _: False)
        self._places: dict[str, Path] = {}  # name → path of the known files
        super().__init__(folders.writable[0], file_size, storage)

    def _entries(self) -> list[os.DirEntry[str]]:
        found: dict[str, os.DirEntry[str]] = {}
        for folder in self._folders.all:
            for entry in list_folder(folder):
                if entry.is_dir():
                    continue
                if entry.name in found:
                    raise CorruptStoreError(
                        f"{entry.path} exists in another folder of the CommitLog, too", path=entry.path
                    )
                found[entry.name] = entry
        self._places = {name: Path(entry.path) for name, entry in found.items()}
        return [found[name] for name in sorted(found)]

    def _path(self, start: int) -> Path:
        name = file_name(start)
        return self._places.get(name, self.folder / name)

    def _path_of_new_file(self, start: int) -> Path:
        name = file_name(start)
        path = self._folders.of_new_file(start // self.file_size, self._is_full) / name
        self._places[name] = path
        return path
