"""QueueFolders: the files of one shard's queues on disk, without the builders that append to them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tidemark.format.check import shard_of
from tidemark.index.consume_queue_ext import ConsumeQueueExt, first_address
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.index.truncate import truncate_queue
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import Storage

from ..plan import EpochPlan


class QueueFolder(NamedTuple):
    """A queue of the shard that has a folder. batch: True for a BatchConsumeQueue."""

    topic: str
    queue_id: int
    batch: bool


class QueueFolders:
    """The queue folders of shard number *shard* of *plan*."""

    def __init__(self, plan: EpochPlan, shard: int, storage: Storage) -> None:
        self._plan = plan
        self._shard = shard
        self._storage = storage

    def owns(self, topic: str, queue_id: int) -> bool:
        """Return True if the queue belongs to this shard."""
        return shard_of(topic.encode(), queue_id, self._plan.shards) == self._shard

    def all(self) -> Iterator[QueueFolder]:
        """Yield each queue of this shard that has a folder."""
        paths = self._plan.paths
        for root, batch in ((paths.consume_queue, False), (paths.batch_consume_queue, True)):
            for path in sorted(root.glob("*/*")):
                if path.is_dir() and path.name.isdigit() and self.owns(path.parent.name, int(path.name)):
                    yield QueueFolder(path.parent.name, int(path.name), batch)

    def open(self, queue: QueueFolder) -> MappedFileQueue:
        """Return the files of *queue*, for writing."""
        size = self._plan.batch_consume_queue_size if queue.batch else self._plan.consume_queue_size
        path = self._plan.paths.queue(queue.topic, queue.queue_id, batch=queue.batch)
        return MappedFileQueue(path, size, self._storage, sync_names_later=True)

    def open_ext(self, queue: QueueFolder) -> MappedFileQueue | None:
        """Return the files of the queue's extension; None if it has none."""
        return None if queue.batch else self._plan.existing_ext(queue.topic, queue.queue_id, self._storage)

    def sync_from(self, mark: int) -> None:
        """Sync the files that may hold units of records at or above *mark*, and their extensions."""
        for queue in self.all():
            with contextlib.closing(self.open(queue)) as files:
                end = (find_batch_end if queue.batch else find_simple_end)(files, mark)
                files.has_unsynced_name = True  # unknown, so assume it
                self.sync([(files, start) for start in files.starts if start + files.file_size > end])
            ext = self.open_ext(queue)
            if ext is not None:
                self.sync([(ext, start) for start in ext.starts])
                ext.close()

    def sync(self, written: Iterable[tuple[MappedFileQueue, int]]) -> None:
        """Sync each (files, start of a file) that still exists, and the folders of new queues."""
        folders: set[Path] = set()
        queues: set[MappedFileQueue] = set()
        for files, start in written:
            queues.add(files)
            with contextlib.suppress(FileNotFoundError):  # expired meanwhile
                files.flush(start)
            if files.has_unsynced_name:
                folders.update((files.folder, *files.folder.parents[:2]))  # the queue's, its topic's, and their root
        for folder in sorted(folders):
            with contextlib.suppress(FileNotFoundError):
                self._storage.sync_folder(folder)
        for files in queues:
            files.has_unsynced_name = False

    def truncate(self, physical_end: int) -> None:
        """Drop the units of records at or above *physical_end*."""
        for queue in self.all():
            ext = self.open_ext(queue)
            with contextlib.closing(self.open(queue)) as files:
                truncate_queue(files, physical_end, batch=queue.batch, ext=ext)
            if ext is not None:
                ext.close()

    def expire_ext(self, queue: QueueFolder, files: MappedFileQueue) -> None:
        """Delete files of the extension that no unit of the queue's *files* points at."""
        ext = self.open_ext(queue)
        address = first_address(files)
        if ext is not None and address is not None:
            ConsumeQueueExt(ext).truncate_by_min_address(address)
            ext.close()
