"""RocketMQ's DefaultMessageStoreCleanFilesTest: one record a log file, seven units or keys a queue or index file.

Its log files have 128 bytes, Tidemark's the writer's minimum, 4096; its clock is files' mtimes, Tidemark's store times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from services.writer.log.disk_guard import DiskGuard
from services.writer.log.queue_offsets import QueueOffsets, Snapshot, save_snapshot
from services.writer.retention.retention_thread import Retention
from services.writer.retention.trusted_clock import TrustedClock
from services.writer.retention_policy import DiskUse, RetentionPolicy
from tests.builders import properties, write_log
from tests.conformance.peer.message_store import MessageStore
from tests.pipeline_runs import build, plan_of
from tidemark.errors import DiskFullError
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

pytestmark = pytest.mark.conformance

FILE_SIZE, COUNT, HOUR_MS = 4096, 55, 3_600_000
SIZES: dict[str, Any] = {"consume_queue_file_size_bytes": 140, "index_slots": 4, "index_entries": 8}
AN_HOUR = RetentionPolicy(HOUR_MS, 0)
KEYS = properties({"KEYS": "k"})
ROOMY = DiskUse(1, 1 << 40)


class CleanedStore:
    """A log of one record a file, some of them two hours old, indexed; and its retention, run by run."""

    def __init__(
        self,
        root: Path,
        policy: RetentionPolicy,
        *,
        count: int = COUNT,
        expired: Sequence[int] = range(15),
        look: Callable[[Path], DiskUse] = lambda _: ROOMY,
    ) -> None:
        self.paths = StorePaths(root)
        now_ms = time.time_ns() // 1_000_000
        body = bytes(FILE_SIZE - 8 - 91 - len(b"TopicTest") - len(KEYS))
        times = [now_ms - 2 * HOUR_MS if number in expired else now_ms for number in range(count)]
        write_log(
            self.paths.commit_log,
            FILE_SIZE,
            (
                {"body": body, "properties": KEYS, "queue_offset": number, "store_timestamp": at_ms}
                for number, at_ms in enumerate(times)
            ),
        )
        self.index()
        snapshot_path = self.paths.writer / "queue_offsets"
        self.paths.writer.mkdir(parents=True, exist_ok=True)
        save_snapshot(snapshot_path, Snapshot(count * FILE_SIZE, now_ms, QueueOffsets()), DiskStorage())
        self._retention = Retention(
            policy,
            MappedFileQueue(self.paths.commit_log, FILE_SIZE, DiskStorage()),
            self.paths,
            snapshot_path,
            term=0,
            interval_s=1,
            open_log=lambda: MappedFileQueue(self.paths.commit_log, FILE_SIZE),
            ask_for_snapshot=lambda: None,
            on_deleted=lambda: None,
            on_failure=lambda error: None,
            clock=TrustedClock(grace_ms=0),
            look=look,
        )

    def index(self) -> None:
        """Index new records and expire queue and index files, as a pipeline does."""
        build(plan_of(self.paths.root, **SIZES))

    def clean(self) -> int:
        """Run retention once; return the number of deleted log files."""
        deleted = self._retention.run_once()
        self.index()
        return deleted

    @property
    def files(self) -> tuple[int, int, int]:
        """Return the numbers of log, queue and index files."""
        queue = self.paths.queue("TopicTest", 0, batch=False)
        return tuple(len(list(folder.iterdir())) for folder in (self.paths.commit_log, queue, self.paths.index))  # type: ignore[return-value]


def test_cl1_a_record_fills_one_file(tmp_path: Path) -> None:
    """4096 - 8 bytes fit into a file of 4096: 55 log files, and ceil(55 / 7) of queue and index."""
    assert CleanedStore(tmp_path, AN_HOUR).files == (55, 8, 8)


def test_cl2_a_nearly_full_disk_refuses_until_there_is_room(tmp_path: Path) -> None:
    """There is no flag to clear: each append checks, at most once a second."""
    free = [50]
    guard = DiskGuard(tmp_path, 100, look=lambda _: free[0])
    with pytest.raises(DiskFullError):
        guard.require_room()
    free[0] = 200
    deadline = time.monotonic() + 60
    while True:
        try:
            guard.require_room()
            break
        except DiskFullError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    with MessageStore(tmp_path / "store", min_free_disk_bytes=1 << 60) as store:
        assert store.refused("t", (b"x", {})).reason == "DISK_FULL"


def test_cl3_ten_expired_files_are_deleted_per_run_with_queue_and_index_files(tmp_path: Path) -> None:
    """15 of 55 are expired: ten, five, none are deleted; of queue and index a seventh of that, rounded down."""
    store = CleanedStore(tmp_path, AN_HOUR)
    assert (store.clean(), store.files) == (10, (45, 7, 7))
    assert (store.clean(), store.files) == (5, (40, 6, 6))
    assert (store.clean(), store.files) == (0, (40, 6, 6))


def used_by(log: Path, *, threshold_files: int) -> Callable[[Path], DiskUse]:
    """Return a disk that is 75 % full with that many log files."""

    def look(_: Path) -> DiskUse:
        used = sum(path.stat().st_blocks * 512 for path in log.iterdir())
        file = next(log.iterdir()).stat().st_blocks * 512
        return DiskUse(used, -(-threshold_files * file * 100 // 75))

    return look


def test_cl4_expired_files_are_deleted_by_disk_use(tmp_path: Path) -> None:
    """Above 75 %, at any hour, the oldest are deleted until it is below, whatever their age."""
    look = used_by(tmp_path / "commitlog", threshold_files=40)
    store = CleanedStore(tmp_path, RetentionPolicy(0, 75), look=look)
    assert (store.clean(), store.files) == (10, (45, 7, 7))
    assert (store.clean(), store.files) == (5, (40, 6, 6))
    assert (store.clean(), store.files) == (0, (40, 6, 6))


def test_cl5_unexpired_files_are_deleted_on_a_full_disk(tmp_path: Path) -> None:
    """Ten are deleted a run; the last file stays, however full the disk is."""
    store = CleanedStore(tmp_path, RetentionPolicy(0, 75), expired=(), look=lambda _: DiskUse(1 << 40, 1 << 40))
    assert [store.clean() for _ in range(7)] == [10, 10, 10, 10, 10, 4, 0]
    assert store.files == (1, 1, 1)


def test_mfq6_only_leading_files_expire(tmp_path: Path) -> None:
    """Of 50 files 0 to 4 and 21 to 49 are old: five are deleted, and there is no gap in the middle."""
    store = CleanedStore(tmp_path, AN_HOUR, count=50, expired=[*range(5), *range(21, 50)])
    assert store.clean() == 5
    starts = sorted(int(path.name) for path in store.paths.commit_log.iterdir())
    assert starts == list(range(5 * FILE_SIZE, 50 * FILE_SIZE, FILE_SIZE))
    assert store.clean() == 0
