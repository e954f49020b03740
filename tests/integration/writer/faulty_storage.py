"""A Storage that fails on demand: a small fake over the real disk."""

from __future__ import annotations

import errno
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.store.storage import DiskStorage, Words


class FaultyWords:
    """Words whose flush fails on demand."""

    def __init__(self, words: Words, storage: FaultyStorage) -> None:
        self._words = words
        self._storage = storage

    def load(self, index: int) -> int:
        return self._words.load(index)

    def load_every(self, step: int, start: int, end: int) -> list[int]:
        return self._words.load_every(step, start, end)

    def store(self, index: int, value: int) -> None:
        self._words.store(index, value)

    def flush(self) -> None:
        if self._storage.fail_words_flush:
            raise FlushFailedError("msync failed: injected")
        self._words.flush()

    def address(self, index: int) -> int | None:
        return self._words.address(index)

    def close(self) -> None:
        self._words.close()


class FaultyStorage(DiskStorage):
    """fail_*: fail each such call; torn_bytes: a failing pwrite of more than that writes only these first bytes."""

    def __init__(self) -> None:
        self.fail_fdatasync = False
        self.fail_words_flush = False
        self.fail_pwrite: Callable[[memoryview], OSError | DiskFullError | None] = lambda data: None
        self.fail_create = False
        self.torn_bytes = 0
        self.fdatasync_takes_s = 0.0
        self.fdatasync_gate = threading.Event()
        self.fdatasync_gate.set()
        self.fdatasyncs = 0

    def create(self, path: Path, size: int) -> int:
        if self.fail_create and path.name.isdigit():
            raise DiskFullError("the disk is full: injected", errno=errno.ENOSPC)
        return super().create(path, size)

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        error = self.fail_pwrite(memoryview(data))
        if error is not None:
            super().pwrite(descriptor, memoryview(data)[: self.torn_bytes], at)
            raise error
        super().pwrite(descriptor, data, at)

    def fdatasync(self, descriptor: int) -> None:
        time.sleep(self.fdatasync_takes_s)
        self.fdatasync_gate.wait()
        if self.fail_fdatasync:
            raise FlushFailedError("fdatasync failed: injected", errno=errno.EIO)
        self.fdatasyncs += 1
        super().fdatasync(descriptor)

    def words(self, path: Path, size: int) -> Words:
        return FaultyWords(super().words(path, size), self)


def full(data: memoryview) -> DiskFullError:
    """For `fail_pwrite`: the disk is full."""
    return DiskFullError("the disk is full: injected", errno=errno.ENOSPC)


def full_for_records(data: memoryview) -> DiskFullError | None:
    """For `fail_pwrite`: no room for records, but existing blocks can be zeroed."""
    return full(data) if len(data) > 64 and any(data) else None
