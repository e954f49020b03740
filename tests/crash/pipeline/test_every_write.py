"""A builder that dies at any of its writes, and a restart: the queue and index bytes are the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import properties, write_log
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tidemark.format import index_file
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage, Words

GoldenStore = Callable[[str], Path]
SETTINGS: dict[str, Any] = {
    "commit_log_segment_size_bytes": 4096,
    "consume_queue_file_size_bytes": 200,
    "index_slots": 16,
    "index_entries": 30,
    "chunk_size_bytes": 4096,
    "shards": 2,
}


class Killed(BaseException):
    """Simulates a kill: no code catches it."""


class DyingStorage(DiskStorage):
    """Writes *lives* times and then dies; with torn=True the last write reaches the disk only in part."""

    def __init__(self, lives: int, *, torn: bool = False) -> None:
        self.lives = lives
        self.torn = torn

    def _step(self) -> None:
        if self.lives == 0:
            raise Killed
        self.lives -= 1

    def create(self, path: Path, size: int) -> int:
        self._step()
        return super().create(path, size)

    def create_unsynced(self, path: Path, size: int) -> int:
        self._step()
        return super().create_unsynced(path, size)

    def sync_folder(self, path: Path) -> None:
        self._step()
        super().sync_folder(path)

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        if self.lives == 0 and self.torn:
            os.pwrite(descriptor, memoryview(data)[: len(data) // 2], at)
        self._step()
        super().pwrite(descriptor, data, at)

    def fdatasync(self, descriptor: int) -> None:
        self._step()
        super().fdatasync(descriptor)

    def unlink(self, path: Path) -> None:
        self._step()
        super().unlink(path)

    def words(self, path: Path, size: int) -> Words:
        self._step()
        return super().words(path, size)


def make_store(root: Path) -> Path:
    """Write 40 records in 3 queues, over several files of each kind."""
    write_log(
        root / "commitlog",
        4096,
        (
            {
                "body": b"x" * (i % 50),
                "queue_id": i % 3,
                "queue_offset": i // 3,
                "properties": properties({"UNIQ_KEY": f"u{i}", "KEYS": f"k{i % 4}"}),
            }
            for i in range(40)
        ),
    )
    return root


@pytest.mark.parametrize("torn", [False, True])
def test_a_kill_at_any_write_and_a_restart_give_the_same_files(
    tmp_path: Path, torn: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every write of the whole build is once the last one.

    Slots that do not touch are separate writes, like distant ones.
    """
    monkeypatch.setattr(index_file, "_GAP_SLOTS", 0)
    clean = make_store(tmp_path / "clean")
    build(plan_of(clean, **SETTINGS))
    died = 0
    for lives in range(10_000):
        root = make_store(tmp_path / f"{lives}")
        plan = plan_of(root, **SETTINGS)
        try:
            build(plan, DyingStorage(lives, torn=torn))
            break
        except Killed:
            died += 1
        build(plan_of(root, **SETTINGS))
        assert queue_files(root) == queue_files(clean), f"died at write {lives}"
        assert index_contents(root) == index_contents(clean), f"died at write {lives}"
        marks = Marks.open_read_only(plan.paths.marks)
        assert marks.watermark() == marks.durable_floor() == plan.limit
        marks.close()
    assert died > 50
