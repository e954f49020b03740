"""Faults put into the code under test, to see that the suite notices: a checker that finds nothing proves nothing."""

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
    """A disk that says it has synced."""

    def fdatasync(self, descriptor: int) -> None:
        pass


class WithoutLogFdatasync(DiskStorage):
    """The writer forgets to sync the log; everything else is synced."""

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
    """Names are made, and never synced."""
    patch.setattr("tidemark.store.storage._fsync_folder", lambda path: None)
    return DiskStorage()


def without_names_of_new_queues(patch: pytest.MonkeyPatch) -> Storage:
    """The first file of a queue is synced, and nobody syncs that there is one."""
    patch.setattr(DiskStorage, "sync_folder", lambda storage, path: None)
    return DiskStorage()


def without_journal_flush(patch: pytest.MonkeyPatch) -> Storage:
    """The log is synced, and what says which of its bytes belong together is not."""
    patch.setattr(BatchJournal, "flush", lambda journal: None)
    return DiskStorage()


def publishing_before_building(patch: pytest.MonkeyPatch) -> Storage:
    """The watermark moves first."""
    built = ShardBuilder._publish

    def publish(builder: Any, part: Any) -> None:
        builder._marks.publish(builder._number, part.end_offset)
        built(builder, part)

    patch.setattr(ShardBuilder, "_publish", publish)
    return DiskStorage()


def durable_marks_before_sync(patch: pytest.MonkeyPatch) -> Storage:
    """The durable mark moves before what it covers is synced."""

    def sync(marks: Any) -> None:
        with marks._lock:
            built = marks._built()
            touched = marks._shard.take_touched()
        marks._marks.publish_durable(marks._number, built)
        marks._shard.flush(touched)

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
    """A record need not say that it lies where it lies. The loops are compiled anew for it, and not kept."""
    from tidemark.format.kernels import walk

    check = "if get_i8(buffer, at + 28) != base + at:"
    source = textwrap.dedent(inspect.getsource(walk._measure.py_func))
    assert source.count(check) == 1
    scope: dict[str, Any] = dict(vars(walk))
    exec(source.replace("@compiled\n", "").replace(check, "if False:"), scope)
    patch.setattr(walk, "_measure", numba.njit(scope["_measure"]))
    for name in ("walk", "find_next"):
        patch.setattr(walk, name, numba.njit(getattr(walk, name).py_func))
