from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.writer.batch.batch import QueueKey
from services.writer.log.background_chores import BackgroundChores
from services.writer.log.queue_offsets import QueueOffsets, Snapshot, load_snapshot
from services.writer.log.segments import Segments
from tests.waiting import until
from tidemark.errors import DiskFullError, FlushFailedError, StoreError
from tidemark.store.mapped_file_queue import MappedFileQueue, file_name
from tidemark.store.storage import DiskStorage

FILE_SIZE = 4096
LONG_S = 20.0
NEVER_S = 3600.0  # an interval that no test waits for


class Disk(DiskStorage):
    """A disk that refuses new files while *is_full* is set."""

    is_full = False

    def create(self, path: Path, size: int) -> int:
        if self.is_full:
            raise DiskFullError("the disk is full")
        return super().create(path, size)


class Keeping:
    """A started keeper over real files, and its calls."""

    def __init__(self, folder: Path) -> None:
        self.disk = Disk()
        self.segments = Segments(MappedFileQueue(folder / "commitlog", FILE_SIZE, self.disk))
        self.snapshot_path = folder / "queue_offsets"
        self.flushed_offset = 0
        self.sync_error: StoreError | None = None
        self.syncs: list[bool] = []  # of the committed offset: True if the snapshot was saved before
        self.failures: list[StoreError] = []
        self.keeper = BackgroundChores(
            self.segments,
            self._make_committed_durable,
            self.disk,
            self.snapshot_path,
            interval_s=NEVER_S,
            flushed_offset=lambda: self.flushed_offset,
            on_failure=self.failures.append,
        )
        self.keeper.start()

    def _make_committed_durable(self) -> None:
        if self.sync_error is not None:
            raise self.sync_error
        self.syncs.append(self.snapshot_path.exists())

    def has_file(self, start: int) -> bool:
        return self.segments.log.covers(start)


@pytest.fixture
def keeping(tmp_path: Path) -> Iterator[Keeping]:
    made = Keeping(tmp_path)
    yield made
    made.keeper.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "keeper"], "the thread has ended"


def snapshot_at(position: int) -> Snapshot:
    offsets = QueueOffsets()
    offsets.set(QueueKey("orders", 0), position // 100)
    return Snapshot(position, 1, offsets)


def test_next_file_is_prepared_in_its_full_size(keeping: Keeping) -> None:
    keeping.keeper.prepare(0)
    until(lambda: keeping.has_file(0))
    assert (keeping.segments.log.folder / file_name(0)).stat().st_size == FILE_SIZE


def test_file_that_cannot_be_prepared_is_logged_and_tried_only_once(keeping: Keeping) -> None:
    """The appender creates a missing file itself; the keeper continues with its other work."""
    with capture_logs() as logs:
        keeping.disk.is_full = True
        keeping.keeper.prepare(0)
        until(lambda: bool(logs))
        keeping.disk.is_full = False
        keeping.keeper.prepare(0)
        keeping.keeper.committed()
        until(lambda: bool(keeping.syncs))
        assert not keeping.has_file(0)
        keeping.keeper.prepare(FILE_SIZE)
        until(lambda: keeping.has_file(FILE_SIZE))
    assert [event["event"] for event in logs] == ["next_file_not_prepared"]
    assert keeping.failures == []


def test_commits_within_the_interval_share_one_sync(keeping: Keeping) -> None:
    """Urgent work ends the interval early, and the moved offset is synced with it."""
    keeping.keeper.committed()
    until(lambda: len(keeping.syncs) == 1)
    for _ in range(20):
        keeping.keeper.committed()
        time.sleep(0.001)
    keeping.keeper.prepare(0)
    until(lambda: len(keeping.syncs) == 2)
    keeping.keeper.close()
    assert len(keeping.syncs) == 2


def test_snapshot_is_saved_once_the_log_is_flushed_up_to_it(keeping: Keeping) -> None:
    """The committed offset is durable before the snapshot, which recovery trusts."""
    snapshot = snapshot_at(500)
    keeping.flushed_offset = 499
    keeping.keeper.save(snapshot)
    keeping.keeper.committed()
    until(lambda: len(keeping.syncs) == 1)
    assert load_snapshot(keeping.snapshot_path) is None
    keeping.flushed_offset = 500
    keeping.keeper.committed()
    until(lambda: load_snapshot(keeping.snapshot_path) == snapshot)
    assert keeping.syncs[1] is False


def test_snapshot_that_a_full_disk_refuses_is_logged_and_the_next_one_is_saved(keeping: Keeping) -> None:
    keeping.flushed_offset = 900
    with capture_logs() as logs:
        keeping.disk.is_full = True
        keeping.keeper.save(snapshot_at(500))
        until(lambda: bool(logs))
        keeping.disk.is_full = False
        keeping.keeper.save(snapshot_at(900))
        until(lambda: load_snapshot(keeping.snapshot_path) == snapshot_at(900))
    assert [event["event"] for event in logs] == ["snapshot_not_saved"]


def test_failed_sync_of_the_committed_offset_is_reported_and_ends_the_work(keeping: Keeping) -> None:
    keeping.sync_error = FlushFailedError("the checkpoint")
    keeping.keeper.committed()
    until(lambda: bool(keeping.failures))
    assert keeping.failures == [keeping.sync_error]
    keeping.keeper.close()
    keeping.keeper.prepare(0)
    assert not keeping.has_file(0)
