"""A failed sync ends the pipeline; data that it may have lost is built again from the durable marks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.indexer.pipeline.epoch import run_epoch
from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.prepare import prepare
from tests.crash.pipeline.test_every_write import SETTINGS, make_store
from tests.pipeline_runs import build, index_contents, plan_of, queue_files
from tests.unit.store.recording_storage import KilledHere
from tidemark.errors import FlushFailedError
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage


class FailingSync(DiskStorage):
    """Every fdatasync fails, and the bytes of the queue and index files since the last one are lost."""

    def fdatasync(self, descriptor: int) -> None:
        raise FlushFailedError("fdatasync failed: input/output error")


def lose_everything(root: Path) -> None:
    """Lose all bytes: files have their size, and zeros."""
    for folder in ("consumequeue", "batchconsumequeue", "index"):
        for path in (root / folder).rglob("*"):
            if path.is_file():
                path.write_bytes(bytes(path.stat().st_size))


def visible(plan: EpochPlan, shard: int) -> int:
    marks = Marks.open_read_only(plan.paths.marks)
    try:
        return marks.visible(shard)
    finally:
        marks.close()


def test_after_a_failed_sync_no_task_runs_and_the_next_start_rebuilds_everything(tmp_path: Path) -> None:
    """Spark's retry is refused, though its own sync would succeed."""
    clean, root = make_store(tmp_path / "clean"), make_store(tmp_path / "store")
    build(plan_of(clean, **SETTINGS))
    plan = plan_of(root, **SETTINGS)
    plan.paths.indexer.mkdir(parents=True)
    prepare(plan, DiskStorage())
    for shard in range(plan.all_shards):
        with pytest.raises(FlushFailedError):
            run_epoch(plan, shard=shard, follower=0, storage=FailingSync())
        before = visible(plan, shard)
        with pytest.raises(FlushFailedError):
            run_epoch(plan, shard=shard, follower=0, storage=DiskStorage())
        assert visible(plan, shard) == before
    lose_everything(root)
    build(plan_of(root, **SETTINGS))
    assert queue_files(root) == queue_files(clean)
    assert index_contents(root) == index_contents(clean)
    assert not plan.failed_flag.exists()


class KilledAtSync(DiskStorage):
    """Kills the builder at its first sync: everything is written and published, but not synced."""

    def fdatasync(self, descriptor: int) -> None:
        if "/consumequeue/" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise KilledHere
        super().fdatasync(descriptor)


class SyncRecordingStorage(DiskStorage):
    """Records the synced files."""

    def __init__(self) -> None:
        self.synced: set[str] = set()

    def fdatasync(self, descriptor: int) -> None:
        self.synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        super().fdatasync(descriptor)

    def sync_folder(self, path: Path) -> None:
        self.synced.add(str(path))
        super().sync_folder(path)


def test_files_of_a_killed_builder_are_synced_before_they_count_as_durable(tmp_path: Path) -> None:
    """The next builder has nothing to write; its durable mark covers files and names that it did not write."""
    root = make_store(tmp_path / "store")
    plan = plan_of(root, **{**SETTINGS, "shards": 1, "consume_queue_file_size_bytes": 6000})
    plan.paths.indexer.mkdir(parents=True)
    prepare(plan, DiskStorage())
    with pytest.raises(KilledHere):
        run_epoch(plan, shard=0, follower=0, storage=KilledAtSync())
    marks = Marks.open_read_only(plan.paths.marks)
    assert marks.durable(0) < marks.visible(0) == plan.limit
    storage = SyncRecordingStorage()
    run_epoch(plan, shard=0, follower=0, storage=storage)
    assert marks.durable(0) == plan.limit
    assert storage.synced >= {str(path) for path in (root / "consumequeue").rglob("*")}
    marks.close()
