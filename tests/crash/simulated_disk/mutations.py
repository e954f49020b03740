"""Faults in the code under test, to show that the suite detects them: a checker that finds nothing proves nothing."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from typing import Any

import numba
import pytest

from services.indexer.pipeline.shards.durable_marks import DurableMarks
from services.indexer.pipeline.shards.shard_builder import ShardBuilder
from services.writer.log.batch_journal import BatchJournal
from tidemark.store.storage import DiskStorage, Storage


class WithoutFdatasync(DiskStorage):
    """A disk that only reports its syncs."""

    def fdatasync(self, descriptor: int) -> None:
        pass


class WithoutLogFdatasync(DiskStorage):
    """The writer does not sync the log; everything else is synced."""

    def __init__(self) -> None:
        self._log: set[int] = set()

    def create(self, path: Any, size: int) -> int:
        return self._note(path, super().create(path, size))

    def open(self, path: Any) -> int:
        return self._note(path, super().open(path))

    def _note(self, path: Any, descriptor: int) -> int:
        (self._log.add if path.parent.name == "commitlog" else self._log.discard)(descriptor)
        return descriptor

    def fdatasync(self, descriptor: int) -> None:
        if descriptor not in self._log:
            super().fdatasync(descriptor)


def without_folder_fsync(patch: pytest.MonkeyPatch) -> Storage:
    """Create names without ever syncing them."""
    patch.setattr("tidemark.store.storage._fsync_folder", lambda path: None)
    return DiskStorage()


def without_names_of_new_queues(patch: pytest.MonkeyPatch) -> Storage:
    """Sync the first file of a queue, but not its name."""
    patch.setattr(DiskStorage, "sync_folder", lambda storage, path: None)
    return DiskStorage()


def without_journal_flush(patch: pytest.MonkeyPatch) -> Storage:
    """Sync the log, but not the journal of its batches."""
    patch.setattr(BatchJournal, "flush", lambda journal: None)
    return DiskStorage()


def publishing_before_building(patch: pytest.MonkeyPatch) -> Storage:
    """Move the watermark before building."""
    built = ShardBuilder._publish

    def publish(builder: Any, part: Any) -> None:
        builder._marks.publish(builder._number, part.end_offset)
        built(builder, part)

    patch.setattr(ShardBuilder, "_publish", publish)
    return DiskStorage()


def durable_marks_before_sync(patch: pytest.MonkeyPatch) -> Storage:
    """Move the durable mark before the data below it is synced."""

    def sync(marks: Any) -> None:
        with marks._lock:
            built = marks._built()
            sync_files = marks._shard.take_sync()
        marks._marks.publish_durable(marks._number, built)
        sync_files()

    patch.setattr(DurableMarks, "_sync", sync)
    return DiskStorage()


MUTATIONS: dict[str, Callable[[pytest.MonkeyPatch], Storage]] = {
    "no fdatasync": lambda patch: WithoutFdatasync(),
    "no fdatasync of the log": lambda patch: WithoutLogFdatasync(),
    "no fsync of folders": without_folder_fsync,
    "no sync of a new queue's name": without_names_of_new_queues,
    "no sync of the journal": without_journal_flush,
    "publish before build": publishing_before_building,
    "durable mark before sync": durable_marks_before_sync,
}


def drop_position_check(patch: pytest.MonkeyPatch) -> None:
    """Skip the check of a record's position. The loops are compiled anew for it, and not cached."""
    from tidemark.format.kernels import walk

    check = "if get_i8(buffer, at + PHYSICAL_OFFSET) != base + at:"
    source = textwrap.dedent(inspect.getsource(walk._measure.py_func))
    assert source.count(check) == 1
    scope: dict[str, Any] = dict(vars(walk))
    exec(source.replace("@compiled\n", "").replace(check, "if False:"), scope)
    patch.setattr(walk, "_measure", numba.njit(scope["_measure"]))
    for name in ("walk", "find_next"):
        patch.setattr(walk, name, numba.njit(getattr(walk, name).py_func))
