"""A store whose log is old, and its retention, for tests that delete files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from services.writer.log.queue_offsets import QueueOffsets, Snapshot, save_snapshot
from services.writer.retention.retention_thread import Retention
from services.writer.retention.trusted_clock import TrustedClock
from services.writer.retention_policy import DiskUse, RetentionPolicy
from tests.builders import STORE_MS, write_log
from tests.marked import mark_durable
from tidemark.errors import StoreError
from tidemark.store.log_folders import LogFolders
from tidemark.store.multi_path_mapped_file_queue import open_log
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

SIZE = 4096
HOUR_MS = 3_600_000
HOURLY = RetentionPolicy(HOUR_MS, 0)
TERM = 3


class Disk(DiskStorage):
    """A disk that calls *on_unlink* before each deletion."""

    def __init__(self) -> None:
        self.on_unlink: Callable[[], None] = lambda: None

    def unlink(self, path: Path) -> None:
        self.on_unlink()
        super().unlink(path)


class OldLog:
    """A log of four files whose records are two hours old, and its retention. Its last file is the log's end."""

    def __init__(
        self,
        root: Path,
        policy: RetentionPolicy = HOURLY,
        *,
        folders: int = 1,
        look: Callable[[Path], DiskUse] = lambda _: DiskUse(1, 100),
    ) -> None:
        self.folders = LogFolders((root / "commitlog", root / "second")[:folders])
        self.paths = StorePaths(root, self.folders)
        self.disk = Disk()
        for folder in self.folders.all:
            folder.mkdir(parents=True)
        write_log(root / "commitlog", SIZE, ({"body": bytes(450), "queue_offset": i} for i in range(25)))
        self.log = open_log(self.folders, SIZE, self.disk)
        assert self.log.starts == [0, SIZE, 2 * SIZE, 3 * SIZE]
        self.snapshot_path = root / "queue_offsets"
        self.asked = self.told = 0
        self.failures: list[StoreError] = []
        self.retention = Retention(
            policy,
            self.log,
            self.paths,
            self.snapshot_path,
            term=TERM,
            interval_s=0.001,
            open_log=lambda: open_log(self.folders, SIZE),
            ask_for_snapshot=self._ask,
            on_deleted=self._tell,
            on_failure=self.failures.append,
            clock=TrustedClock(grace_ms=0, wall_ms=lambda: STORE_MS + 2 * HOUR_MS, running_ms=lambda: 0),
            look=look,
        )
        self.save_offsets(4 * SIZE)

    def _ask(self) -> None:
        self.asked += 1

    def _tell(self) -> None:
        self.told += 1

    def index(self, physical_offset: int, term: int = TERM) -> None:
        mark_durable(self.paths.root, physical_offset, term=term)

    def save_offsets(self, position: int) -> None:
        save_snapshot(self.snapshot_path, Snapshot(position, STORE_MS, QueueOffsets()), self.disk)
