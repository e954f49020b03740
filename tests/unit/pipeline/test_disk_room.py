from __future__ import annotations

import threading
from pathlib import Path

import pytest

from services.indexer.pipeline import disk_room
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.disk_room import is_disk_full, wait_for_room
from services.indexer.pipeline.plan import EpochPlan, make_plan
from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.store.storage import DiskStorage


class FullDisk(DiskStorage):
    """A disk that refuses its first writes, and can set *stopping* meanwhile."""

    def __init__(self, refusals: int, stopping: threading.Event | None = None) -> None:
        self.refusals = refusals
        self.stopping = stopping

    def pwrite(self, descriptor: int, data: bytes | bytearray | memoryview, at: int) -> None:
        if self.refusals:
            self.refusals -= 1
            if self.stopping is not None:
                self.stopping.set()
            raise DiskFullError("the disk is full")
        super().pwrite(descriptor, data, at)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EpochPlan:
    monkeypatch.setattr(disk_room, "_LOOK_EVERY_S", 0.001)
    plan = make_plan(PipelineSettings(store_root=tmp_path, commit_log_segment_size_bytes=4096))
    plan.paths.indexer.mkdir(parents=True)
    return plan


def test_wait_for_room_ends_when_a_file_can_be_written_and_leaves_none(plan: EpochPlan) -> None:
    disk = FullDisk(refusals=3)
    assert wait_for_room(plan, disk, threading.Event())
    assert disk.refusals == 0
    assert list(plan.paths.indexer.iterdir()) == []


def test_a_stop_ends_the_wait_on_a_disk_that_stays_full(plan: EpochPlan) -> None:
    stopping = threading.Event()
    assert not wait_for_room(plan, FullDisk(10**9, stopping), stopping)
    assert list(plan.paths.indexer.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DiskFullError("x"), True),
        (RuntimeError("Job aborted: tidemark.errors.DiskFullError: x"), True),
        (RuntimeError("java.io.IOException: No space left on device"), True),
        (RuntimeError("Disk quota exceeded"), True),
        (FlushFailedError("the disk"), False),
        (OSError(5, "Input/output error"), False),
    ],
)
def test_a_full_disk_is_recognised_in_task_and_spark_failures(error: Exception, expected: bool) -> None:
    assert is_disk_full(error) is expected


def test_a_failed_sync_whose_reason_could_not_be_written_is_a_full_disk(tmp_path: Path) -> None:
    """The flag of another reason is none."""
    plan = make_plan(PipelineSettings(store_root=tmp_path))
    plan.paths.indexer.mkdir(parents=True)
    plan.failed_flag.touch()
    with pytest.raises(FlushFailedError) as full:
        plan.require_no_failed_sync()
    assert is_disk_full(full.value)
    plan.failed_flag.unlink()
    plan.note_failed_sync("Input/output error")
    with pytest.raises(FlushFailedError, match="Input/output error") as other:
        plan.require_no_failed_sync()
    assert not is_disk_full(other.value)
