"""A Storage that writes to the real disk and can stop, or fail, before any of its steps."""

from __future__ import annotations

import errno
from pathlib import Path

from tidemark.store.storage import DiskStorage, Words


class KilledHere(BaseException):
    """Simulates the death of the process: nothing after this step happens."""


class RecordingStorage:
    """Records the name of every step; dies before step number *die_before*."""

    def __init__(self, *, die_before: int | None = None, full_at: str | None = None) -> None:
        self.steps: list[str] = []
        self._disk = DiskStorage()
        self._die_before = die_before
        self._full_at = full_at

    def _step(self, name: str) -> None:
        if self._die_before == len(self.steps):
            raise KilledHere
        if self._full_at == name:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.steps.append(name)

    def create(self, path: Path, size: int) -> int:
        self._step("create")
        return self._disk.create(path, size)

    def create_unsynced(self, path: Path, size: int) -> int:
        self._step("create_unsynced")
        return self._disk.create_unsynced(path, size)

    def sync_folder(self, path: Path) -> None:
        self._step("sync_folder")
        self._disk.sync_folder(path)

    def open(self, path: Path) -> int:
        return self._disk.open(path)

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        self._step("pwrite")
        self._disk.pwrite(descriptor, data, at)

    def fdatasync(self, descriptor: int) -> None:
        self._step("fdatasync")
        self._disk.fdatasync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        self._step("truncate")
        self._disk.truncate(descriptor, size)

    def rename(self, source: Path, target: Path) -> None:
        self._step("rename")
        self._disk.rename(source, target)

    def unlink(self, path: Path) -> None:
        self._step("unlink")
        self._disk.unlink(path)

    def make_folder(self, path: Path) -> None:
        self._step("make_folder")
        self._disk.make_folder(path)

    def words(self, path: Path, size: int) -> Words:
        self._step("words")
        return self._disk.words(path, size)
