"""FencedStorage: the storage of a task that may hang, lose its shards to another task, and continue later."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tidemark.store.storage import Storage


class FencedStorage:
    """A storage that creates, replaces and removes files only while *confirm* raises no StoreLockedError.

    A creation is confirmed afterwards, and undone if it came too late: the task that takes over deals with each file
    that it finds, so none may appear later. Writes into open files are not checked.
    """

    def __init__(self, storage: Storage, confirm: Callable[[], None]) -> None:
        self._storage = storage
        self._confirm = confirm
        self.pwrite, self.fdatasync, self.open = storage.pwrite, storage.fdatasync, storage.open
        self.sync_folder, self.make_folder, self.words = storage.sync_folder, storage.make_folder, storage.words

    def create(self, path: Path, size: int) -> int:
        return self._created(self._storage.create, path, size)

    def create_unsynced(self, path: Path, size: int) -> int:
        return self._created(self._storage.create_unsynced, path, size)

    def _created(self, create: Callable[[Path, int], int], path: Path, size: int) -> int:
        try:
            descriptor = create(path, size)
        except FileExistsError:
            self._confirm()
            raise
        try:
            self._confirm()
        except BaseException:
            os.close(descriptor)
            self._storage.unlink(path)
            raise
        return descriptor

    def truncate(self, descriptor: int, size: int) -> None:
        self._confirm()
        self._storage.truncate(descriptor, size)

    def rename(self, source: Path, target: Path) -> None:
        self._confirm()
        self._storage.rename(source, target)

    def unlink(self, path: Path) -> None:
        self._confirm()
        self._storage.unlink(path)
