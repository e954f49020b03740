"""Retention: deletes the oldest files of the log, in a thread of its own, so that no append waits for it.

A file may be deleted when all of this holds (docs/decisions/0010-retention.md):

    it is the log's first file, and later records are indexed too: the log is never emptied
    every shard of the pipeline has durably built all of it, in the writer's current term
    the saved queue offsets are as of its end or later, so that no queue offset is reused
    its newest record is old enough, by store time and by a clock that was not just set ahead, and no other member of
    the group may still have to copy it; or, if retention_disk_percent is set, the disk is too full
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog

from tidemark.errors import CorruptStoreError, FlushFailedError, StoreError
from tidemark.index.ledger import read_ledger
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.paths import StorePaths

from ..log.queue_offsets import load_snapshot
from ..retention_policy import DiskUse, ExpiredLogFile, RetentionPolicy, files_to_delete
from .segment_ages import FileAges
from .trusted_clock import TrustedClock

log = structlog.get_logger()

_REST_S = 0.005  # between two reads of a file whose age is determined
_LOGGED_DAMAGES = 20


def disk_use(path: Path) -> DiskUse:
    """Return the use of the disk of *path*."""
    status = os.statvfs(path)
    used = status.f_blocks - status.f_bfree
    return DiskUse(used * status.f_frsize, (used + status.f_bavail) * status.f_frsize)


class Retention:
    """The thread that deletes files, every *interval_s*.

    ask_for_snapshot: schedules a save of the queue offsets; on_deleted: called after files were deleted.
    needed: returns the physical offset from which another member of the group may have to copy the log; None: without a
    group. It keeps at most the newest *retain_bytes*.
    """

    def __init__(
        self,
        policy: RetentionPolicy,
        log: MappedFileQueue,
        paths: StorePaths,
        snapshot_path: Path,
        *,
        term: int,
        interval_s: float,
        open_log: Callable[[], MappedFileQueue],
        ask_for_snapshot: Callable[[], None],
        on_deleted: Callable[[], None],
        on_failure: Callable[[StoreError], None],
        clock: TrustedClock,
        look: Callable[[Path], DiskUse] = disk_use,
        needed: Callable[[], int] | None = None,
        retain_bytes: int = 0,
    ) -> None:
        self._policy = policy
        self._log = log
        self._paths = paths
        self._snapshot_path = snapshot_path
        self._term = term
        self._interval_s = interval_s
        self._open_log = open_log
        self._ask_for_snapshot = ask_for_snapshot
        self._on_deleted = on_deleted
        self._on_failure = on_failure
        self._clock = clock
        self._look = look
        self._needed = needed
        self._retain_bytes = retain_bytes
        self.deleted_files = 0
        self.deleted_bytes = 0  # of the disk
        self._closing = threading.Event()
        self._ages = FileAges(lambda: self._closing.wait(_REST_S))
        self._thread = threading.Thread(target=self._run, name="retention", daemon=True)

    def start(self) -> None:
        """Start the thread, if retention is on."""
        if self._policy.is_on():
            self._thread.start()

    def close(self) -> None:
        """Stop the thread. A current run ends after its current file."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(self._interval_s):
            try:
                self.run_once()
            except FlushFailedError as error:
                self._on_failure(error)
                return
            except (StoreError, OSError) as error:  # a file that cannot be read or deleted is kept
                log.warning("retention_failed", error=str(error))
            except Exception:
                log.exception("retention_failed")

    def run_once(self) -> int:
        """Delete the files that may be deleted, and return their number."""
        files = self._open_log()
        try:
            now_ms = self._clock.now_ms()
            chosen = files_to_delete(self._table(files, now_ms), self._policy, now_ms=now_ms, disk=self._disk())
        finally:
            files.close()
        if not chosen:
            return 0
        saved = load_snapshot(self._snapshot_path)
        numbered = 0 if saved is None else saved.position
        if numbered < chosen[-1].end:
            self._ask_for_snapshot()
        deleted = 0
        for file in chosen:
            if file.end > numbered or self._closing.is_set():
                break
            self._delete(file)
            deleted += 1
        if deleted:
            self._ages.forget_below(self._log.min_offset)
            self._on_deleted()
        return deleted

    def _disk(self) -> DiskUse:
        """Return the use of the log's disk; of several disks, that of the emptiest, which gets new files."""
        disks = [self._look(folder) for folder in self._paths.log_folders.writable]
        return min(disks, key=lambda disk: disk.used_bytes / max(disk.total_bytes, 1))

    def _table(self, files: MappedFileQueue, now_ms: int) -> Iterator[ExpiredLogFile]:
        """Yield the files that meet all conditions except age, oldest first. Each age is determined when requested."""
        indexed = self._durably_indexed()
        needed = self._needed_from(indexed)
        oldest_kept_ms = self._policy.oldest_kept_ms(now_ms)
        for start in files.starts:
            end = start + files.file_size
            if end >= indexed:
                return
            newest_ms = self._ages.newest_ms(files, start, oldest_kept_ms=oldest_kept_ms, now_ms=now_ms)
            if self._closing.is_set():
                return
            disk_bytes = os.fstat(files.opened(start).descriptor).st_blocks * 512
            yield ExpiredLogFile(start, end, newest_ms, disk_bytes, is_needed=end > needed)

    def _needed_from(self, log_end: int) -> int:
        """Return the physical offset from which the log is kept for other members of the group."""
        return log_end if self._needed is None else max(self._needed(), log_end - self._retain_bytes)

    def _durably_indexed(self) -> int:
        """Return the offset below which every shard has durably built the log, in this term; 0 if it is unknown."""
        try:
            marks = Marks.open_read_only(self._paths.marks)
        except (FileNotFoundError, CorruptStoreError):
            return 0
        try:
            return marks.durable_floor() if marks.term == self._term else 0
        finally:
            marks.close()

    def _delete(self, file: ExpiredLogFile) -> None:
        self._log.delete_file(file.start)
        self.deleted_files += 1
        self.deleted_bytes += file.disk_bytes
        damages = [
            {"physical_offset": entry["physical_offset"], "reason": entry["reason"]}
            for entry in read_ledger(self._paths.indexer)
            if file.start <= entry["physical_offset"] < file.end
        ]
        log.info(
            "log_file_deleted",
            physical_offset=file.start,
            min_offset=self._log.min_offset,
            newest_store_timestamp_ms=file.newest_ms,
            disk_bytes=file.disk_bytes,
            damages=len(damages),
            damaged=damages[:_LOGGED_DAMAGES],
        )
