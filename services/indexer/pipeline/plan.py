"""The plan of an epoch: everything a task needs to know, small and picklable."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

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
    """What all tasks of one run of the pipeline share. Sizes in bytes, times in milliseconds."""

    root: Path
    log_folders: LogFolders
    shards: int  # queue shards; the key index is shard number `shards`
    epoch_ms: int  # 0: drain what is committed and stop
    limit: int | None  # end of the log where no writer tells it
    segment_size: int | None  # None: as the files are, once there are any
    consume_queue_size: int
    batch_consume_queue_size: int
    consume_queue_ext_size: int
    consume_queue_ext: bool  # build consume queue extensions
    index_slots: int
    index_entries: int
    chunk_size: int
    durable_interval_ms: int
    multi_dispatch: bool  # build light queues
    driver_pid: int | None  # tasks end with it; None where they run on other hosts
    lease_ms: int = 0  # of a shard's holder; 0: a lock alone, on one machine
    boot_id: str | None = None  # of the driver's machine, where tasks could run on another one
    scanned: ScannedRanges | None = None  # what a drain need not walk
    traced_messages: int = 0  # of an epoch that get a span; 0: traces are off, nothing is looked for
    set_aside_files: int = 16  # files and folders that are kept where a rebuild has replaced them
    short_until_s: float = 0.0  # epochs that begin earlier are short, seconds since the epoch of Unix

    @property
    def paths(self) -> StorePaths:
        """Where the store's files lie."""
        return StorePaths(self.root, self.log_folders)

    @property
    def all_shards(self) -> int:
        """Number of shards, the key index among them."""
        return self.shards + 1

    def epoch_ms_at(self, now_s: float) -> int:
        """How long an epoch is that begins now.

        Just started, the JVM interprets what it does at an epoch's end, and takes twice the processor time of later:
        short epochs have it compiled soon.
        """
        return min(self.epoch_ms, _SHORT_EPOCH_MS) if now_s < self.short_until_s else self.epoch_ms

    @property
    def shares(self) -> list[list[int]]:
        """What each task of a query builds: shard numbers.

        One shard of queues is followed by the task that follows the key index: one process that wakes up for a message
        instead of two. A drain is for all cores.
        """
        numbers = list(range(self.all_shards))
        return [numbers] if self.shards == 1 and self.epoch_ms else [[number] for number in numbers]

    def open_log(self) -> MappedFileQueue:
        """The CommitLog, to read. StoreContradictionError when its files do not have the size that was set."""
        size = self.segment_size or log_size_on_disk(self.log_folders) or _DEFAULT_SEGMENT_SIZE
        return open_log(self.log_folders, size)

    def open_ext(self, topic: str, queue_id: int, storage: Storage) -> MappedFileQueue:
        """The extension of a ConsumeQueue, to write."""
        return MappedFileQueue(self.paths.queue_ext(topic, queue_id), self.consume_queue_ext_size, storage)

    def existing_ext(self, topic: str, queue_id: int, storage: Storage) -> MappedFileQueue | None:
        """The same where the queue has one."""
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
        """What tasks have scanned of the log, while a drain needs it."""
        return self.paths.indexer / "scan"

    @property
    def stop_flag(self) -> Path:
        """While this file is there, tasks end."""
        return self.paths.indexer / "stop"

    @property
    def failed_flag(self) -> Path:
        """There since a sync failed: no task runs until a new pipeline has gone back to the durable marks."""
        return self.paths.indexer / "sync-failed"

    def lock(self, path: Path) -> FolderLock | Lease:
        """The lock that *path* means: on a cluster one that a holder which hangs loses."""
        return Lease(path, length_ms=self.lease_ms) if self.lease_ms else FolderLock(path)

    def lock_path(self, shard: int) -> Path:
        """Whoever holds it builds the shard."""
        return self.paths.indexer / f"shard-{shard}.lock"

    def last_sync_path(self, shard: int) -> Path:
        """Whoever holds it has let go of the shard, and syncs what it has built."""
        return self.paths.indexer / f"shard-{shard}.last-sync"

    def standby_path(self, shard: int) -> Path:
        """Whoever holds it waits for the shard."""
        return self.paths.indexer / f"shard-{shard}.standby"


def make_plan(settings: PipelineSettings, *, limit: int | None = None) -> EpochPlan:
    """The plan of *settings*; sizes of files that exist win over settings that were left at their defaults.

    A size that was set and contradicts the files is refused where the files are opened (StoreContradictionError).
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
    """Slots of the index files that exist, if these have RocketMQ's proportion of entries to slots."""
    size = common_file_size(size for path in index_files(folder) if (size := path.stat().st_size))
    return None if size is None else slots_of_size(size)
