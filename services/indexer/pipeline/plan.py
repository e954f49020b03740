"""The plan of an epoch: all parameters of a task, small and picklable."""

from __future__ import annotations

import contextlib
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from tidemark.errors import FlushFailedError
from tidemark.format.index_file import DEFAULT_SLOTS, ENTRIES_A_SLOT, file_size, slots_of_size
from tidemark.index.damaged_files import FileSizes, common_file_size, sizes_below
from tidemark.index.key_index import index_files
from tidemark.index.scan.log_range import ScannedRanges
from tidemark.store.lease import Lease
from tidemark.store.lock import FolderLock
from tidemark.store.log_folders import LogFolders
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.multi_path_mapped_file_queue import log_size_on_disk, open_log
from tidemark.store.originals.terms import machine_boot_id
from tidemark.store.paths import StorePaths
from tidemark.store.storage import Storage

from .config import PipelineSettings

_DEFAULT_SEGMENT_SIZE = 1 << 30
_SHORT_EPOCH_MS = 500


@dataclass(frozen=True)
class EpochPlan:
    """Parameters that all tasks of one pipeline run share. Sizes in bytes, times in milliseconds."""

    root: Path
    log_folders: LogFolders
    shards: int  # queue shards; the key index is shard number `shards`
    epoch_ms: int  # 0: drain up to the committed offset and stop
    limit: int | None  # end of the log where no writer publishes it
    segment_size: int | None  # None: the size of the existing files
    consume_queue_size: int
    batch_consume_queue_size: int
    consume_queue_ext_size: int
    consume_queue_ext: bool  # build consume queue extensions
    index_slots: int
    index_entries: int
    chunk_size: int
    durable_interval_ms: int
    multi_dispatch: bool  # build light queues
    driver_pid: int | None  # tasks end when it ends; None on a cluster
    lease_ms: int = 0  # of a shard's lease; 0: a plain lock, on one machine
    boot_id: str | None = None  # of the driver's machine, if tasks could run on another one
    scanned: ScannedRanges | None = None  # ranges that a drain need not walk
    traced_messages: int = 0  # most messages per epoch that get a span; 0: traces are off
    set_aside_files: int = 16  # how many replaced files and folders stay
    short_until_s: float = 0.0  # epochs that begin earlier are short; Unix time in seconds

    @property
    def paths(self) -> StorePaths:
        """Paths of the store's files."""
        return StorePaths(self.root, self.log_folders)

    @property
    def all_shards(self) -> int:
        """Number of shards, including the key index."""
        return self.shards + 1

    def epoch_ms_at(self, now_s: float) -> int:
        """Return the length of an epoch that begins at *now_s*.

        A JVM that has just started interprets the code of an epoch's end, which doubles its processor time. Short
        epochs make it compile that code soon.
        """
        return min(self.epoch_ms, _SHORT_EPOCH_MS) if now_s < self.short_until_s else self.epoch_ms

    @property
    def shares(self) -> list[list[int]]:
        """The shard numbers that each task of a query builds.

        With one queue shard, the same task also follows the key index, so that a message wakes one process instead of
        two. A drain uses one task per shard, to use all cores.
        """
        numbers = list(range(self.all_shards))
        return [numbers] if self.shards == 1 and self.epoch_ms else [[number] for number in numbers]

    def open_log(self) -> MappedFileQueue:
        """Open the CommitLog for reads. StoreContradictionError: its files do not have the configured size."""
        size = self.segment_size or log_size_on_disk(self.log_folders) or _DEFAULT_SEGMENT_SIZE
        return open_log(self.log_folders, size)

    def open_ext(self, topic: str, queue_id: int, storage: Storage) -> MappedFileQueue:
        """Open the extension of a ConsumeQueue for writes."""
        return MappedFileQueue(self.paths.queue_ext(topic, queue_id), self.consume_queue_ext_size, storage)

    def existing_ext(self, topic: str, queue_id: int, storage: Storage) -> MappedFileQueue | None:
        """Open the extension of a ConsumeQueue for writes; None if it has none."""
        has_one = self.paths.queue_ext(topic, queue_id).is_dir()
        return self.open_ext(topic, queue_id, storage) if has_one else None

    @property
    def file_sizes(self) -> FileSizes:
        """Sizes of whole derived files."""
        return FileSizes(
            queue=self.consume_queue_size,
            batch_queue=self.batch_consume_queue_size,
            extension=self.consume_queue_ext_size,
            index_file=file_size(self.index_slots, self.index_entries),
        )

    @property
    def scan_folder(self) -> Path:
        """Folder of the scanned ranges while a drain needs them."""
        return self.paths.indexer / "scan"

    @property
    def stop_flag(self) -> Path:
        """Path of the stop flag: tasks end while this file exists."""
        return self.paths.indexer / "stop"

    @property
    def failed_flag(self) -> Path:
        """Path of the flag of a failed sync: no task runs until a new pipeline has reset to the durable marks.

        It contains the reason if there was room for it.
        """
        return self.paths.indexer / "sync-failed"

    def note_failed_sync(self, reason: str) -> None:
        """Create the flag of a failed sync, unless it exists. Its reason is complete when it appears."""
        if self.failed_flag.exists():
            return
        made = self.failed_flag.with_name(f"{self.failed_flag.name}.{os.getpid()}.{threading.get_ident()}")
        made.touch()
        with contextlib.suppress(OSError):  # on a full disk it stays empty
            made.write_text(reason)
        made.replace(self.failed_flag)

    def require_no_failed_sync(self) -> None:
        """Raise FlushFailedError if a sync failed since the pipeline's start."""
        with contextlib.suppress(FileNotFoundError):
            reason = self.failed_flag.read_text() or "No space left on device, also for the reason"
            message = f"an earlier sync failed ({reason}): restart the pipeline"
            raise FlushFailedError(message, path=str(self.failed_flag))

    def lock(self, path: Path) -> FolderLock | Lease:
        """Return the lock at *path*: on a cluster a lease, which a hanging holder loses."""
        return Lease(path, length_ms=self.lease_ms) if self.lease_ms else FolderLock(path)

    def lock_path(self, shard: int) -> Path:
        """Return the path of the shard's lock. Its holder builds the shard."""
        return self.paths.indexer / f"shard-{shard}.lock"

    def last_sync_path(self, shard: int) -> Path:
        """Return the path of the last-sync lock. Its holder has released the shard and syncs the rest of its work."""
        return self.paths.indexer / f"shard-{shard}.last-sync"

    def understudy_path(self, shard: int) -> Path:
        """Return the path of the understudy's lock, held together with the shard's, never by Spark's tasks."""
        return self.paths.indexer / f"shard-{shard}.understudy"

    def standby_path(self, shard: int) -> Path:
        """Return the path of the standby lock. Its holder waits for the shard."""
        return self.paths.indexer / f"shard-{shard}.standby"


def make_plan(settings: PipelineSettings, *, limit: int | None = None) -> EpochPlan:
    """Return the plan of *settings*. Sizes of existing files take precedence over default settings.

    A size that was set and contradicts the files is refused when the files are opened (StoreContradictionError).
    """
    paths = StorePaths(settings.store_root.absolute())

    def size(name: str, folder: Path) -> int:
        chosen = int(getattr(settings, name))
        return chosen if name in settings.model_fields_set else (common_file_size(sizes_below(folder)) or chosen)

    slots = settings.index_slots or _slots_on_disk(paths.index) or DEFAULT_SLOTS
    queue_size = size("consume_queue_file_size_bytes", paths.consume_queue)
    return EpochPlan(
        root=paths.root,
        log_folders=settings.log_folders(paths.root),
        shards=settings.shards,
        epoch_ms=0 if settings.once else settings.epoch_ms,
        limit=limit,
        segment_size=settings.commit_log_segment_size_bytes,
        consume_queue_size=-(-queue_size // 20) * 20,
        batch_consume_queue_size=size("batch_consume_queue_file_size_bytes", paths.batch_consume_queue),
        consume_queue_ext_size=size("consume_queue_ext_file_size_bytes", paths.consume_queue_ext),
        consume_queue_ext=settings.enable_consume_queue_ext,
        index_slots=slots,
        index_entries=settings.index_entries or ENTRIES_A_SLOT * slots,
        chunk_size=settings.chunk_size_bytes,
        durable_interval_ms=settings.durable_interval_ms,
        multi_dispatch=settings.enable_multi_dispatch,
        driver_pid=os.getpid() if settings.is_local else None,
        lease_ms=0 if settings.is_local else settings.lease_ms,
        boot_id=None if settings.is_local else machine_boot_id(),
        traced_messages=settings.traced_messages,
        set_aside_files=settings.set_aside_files,
    )


def _slots_on_disk(folder: Path) -> int | None:
    """Return the slots of the existing index files if they have RocketMQ's ratio of entries to slots; None if not."""
    size = common_file_size(size for path in index_files(folder) if (size := path.stat().st_size))
    return None if size is None else slots_of_size(size)
