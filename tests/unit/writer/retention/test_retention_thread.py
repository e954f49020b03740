from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from services.writer.retention_policy import DiskUse, RetentionPolicy
from tests.builders import STORE_MS
from tests.unit.writer.retention.old_log import HOUR_MS, SIZE, TERM, OldLog
from tests.waiting import until
from tidemark.errors import FlushFailedError
from tidemark.index.ledger import Ledger
from tidemark.store.mapped_file_queue import file_name
from tidemark.store.storage import DiskStorage

LONG_S = 20.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[OldLog]:
    made = OldLog(tmp_path)
    yield made
    made.retention.close()


def is_running() -> bool:
    return any(thread.name == "retention" for thread in threading.enumerate())


def test_old_files_below_the_durable_mark_are_deleted_and_counted(store: OldLog) -> None:
    store.index(2 * SIZE + 1)
    disk_bytes = sum((store.log.folder / file_name(start)).stat().st_blocks * 512 for start in (0, SIZE))
    assert store.retention.run_once() == 2
    assert store.log.starts == [2 * SIZE, 3 * SIZE]
    assert (store.retention.deleted_files, store.retention.deleted_bytes, store.told) == (2, disk_bytes, 1)
    assert store.retention.run_once() == 0
    assert store.told == 1, "nothing more was deleted"


@pytest.mark.parametrize("indexed", [0, SIZE, 2 * SIZE, 4 * SIZE])
def test_file_that_ends_at_the_durable_mark_or_above_it_is_kept(store: OldLog, indexed: int) -> None:
    """Records after a deleted file are always indexed, too."""
    store.index(indexed)
    store.retention.run_once()
    assert store.log.min_offset == max(indexed - SIZE, 0)


@pytest.mark.parametrize("term", [None, TERM - 1])
def test_nothing_is_deleted_without_marks_of_the_current_term(store: OldLog, term: int | None) -> None:
    if term is not None:
        store.index(4 * SIZE, term)
    assert store.retention.run_once() == 0
    store.index(4 * SIZE)
    assert store.retention.run_once() == 3


def test_records_that_are_too_young_keep_their_files(tmp_path: Path) -> None:
    store = OldLog(tmp_path, RetentionPolicy(2 * HOUR_MS, 0))
    store.index(4 * SIZE)
    assert store.retention.run_once() == 0


def test_files_wait_for_queue_offsets_that_are_saved_beyond_them(store: OldLog) -> None:
    """Otherwise a restart would count the queues' offsets from a log that no longer has their messages."""
    store.index(4 * SIZE)
    store.save_offsets(2 * SIZE - 1)
    assert (store.retention.run_once(), store.asked) == (1, 1)
    store.save_offsets(3 * SIZE)
    assert (store.retention.run_once(), store.asked) == (2, 1)


@pytest.mark.parametrize(("used", "count"), [((90, 90), 3), ((90, 50), 0), ((50, 90), 0)])
def test_disk_is_too_full_only_if_every_disk_of_the_log_is(tmp_path: Path, used: tuple[int, int], count: int) -> None:
    """The emptiest one gets the next files."""

    def look(folder: Path) -> DiskUse:
        return DiskUse(used[folder.name == "second"] * SIZE, 100 * SIZE)

    store = OldLog(tmp_path, RetentionPolicy(0, 85), folders=2, look=look)
    store.index(4 * SIZE)
    assert store.retention.run_once() == count


def test_deletion_is_logged_with_the_damage_that_it_ends(store: OldLog) -> None:
    store.index(SIZE + 1)
    ledger = Ledger(store.paths.indexer, 0, DiskStorage())
    for physical_offset in (5, SIZE + 5):
        ledger.record(physical_offset=physical_offset, size=1, reason="BAD_CRC")
    with capture_logs() as logs:
        store.retention.run_once()
    (event,) = logs
    assert (event["event"], event["physical_offset"], event["min_offset"]) == ("log_file_deleted", 0, SIZE)
    assert event["newest_store_timestamp_ms"] == STORE_MS
    assert event["damaged"] == [{"physical_offset": 5, "reason": "BAD_CRC"}]


def test_close_ends_a_run_after_its_current_file(store: OldLog) -> None:
    store.index(4 * SIZE)
    store.disk.on_unlink = store.retention.close
    assert store.retention.run_once() == 1
    assert store.told == 1


@pytest.mark.parametrize(
    ("error", "level"), [(OSError(30, "Read-only file system"), "warning"), (RuntimeError("a bug"), "error")]
)
def test_deletion_that_fails_is_logged_and_tried_again_by_the_thread(
    store: OldLog, error: Exception, level: str
) -> None:
    store.index(4 * SIZE)
    failing = [True]

    def refuse() -> None:
        if failing:
            raise error

    store.disk.on_unlink = refuse
    with capture_logs() as logs:
        store.retention.start()
        until(lambda: len(logs) >= 2)
        failing.clear()
        until(lambda: store.log.min_offset == 3 * SIZE)
        store.retention.close()
    assert {(event["event"], event["log_level"]) for event in logs[:2]} == {("retention_failed", level)}
    assert store.failures == []


def test_failed_sync_of_a_deletion_is_reported_once_and_ends_retention(store: OldLog) -> None:
    store.index(4 * SIZE)
    fault = FlushFailedError("the folder")

    def fail() -> None:
        raise fault

    store.disk.on_unlink = fail
    store.retention.start()
    until(lambda: not is_running())
    assert store.failures == [fault]


def test_retention_without_a_limit_never_starts(tmp_path: Path) -> None:
    store = OldLog(tmp_path, RetentionPolicy(0, 0))
    store.index(4 * SIZE)
    store.retention.start()
    assert not is_running()
    store.retention.close()
