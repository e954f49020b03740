"""QueueShard: dispatches walked parts to the queues of one shard."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tidemark.errors import CorruptStoreError
from tidemark.format.check import Checker, Crc, shard_of
from tidemark.format.dispatch_request import Fault, RequestArray
from tidemark.format.topic_name import is_topic_name
from tidemark.index.build import BatchConsumeQueueBuilder, ConsumeQueueBuilder, Oddity, QueueBuilder
from tidemark.index.consume_queue_ext import ConsumeQueueExt, first_address
from tidemark.index.dispatch import QueueRun, group_by_queue
from tidemark.index.expire import expire_queue
from tidemark.index.ledger import Ledger
from tidemark.index.light_queues import LIGHT_PREFIX, light_runs
from tidemark.index.log_walk import LogPart
from tidemark.index.open_queues import OpenQueues
from tidemark.index.queue_end import find_batch_end, find_simple_end
from tidemark.index.rebuild_request import RebuildRequest
from tidemark.index.truncate import is_all_below, truncate_queue
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.originals.tombstones import TombstonesFile
from tidemark.store.originals.topics import TopicsFile
from tidemark.store.storage import Storage

from ..plan import EpochPlan

_UNBUILT = ("QUEUE_OFFSET", "BATCH_SIZE")  # oddities that are damage: the record got no unit


class QueueShard:
    """Builder of one shard's queues. The caller holds its lock."""

    def __init__(self, plan: EpochPlan, shard: int, storage: Storage) -> None:
        self._plan = plan
        self._shard = shard
        self._storage = storage
        self._topics = TopicsFile(plan.paths.topics)
        self._tombstones = TombstonesFile(plan.paths.tombstones)
        self._builders: dict[tuple[str, int], QueueBuilder] = {}
        self._open_queues = OpenQueues()
        self._ledger = Ledger(plan.paths.indexer, shard, storage)
        self._mark = 0
        self._rebuilding: frozenset[tuple[str, int]] | None = None  # the only queues that are built; None: all
        self.damages = 0
        self.oddities = 0

    def checker(self) -> Checker:
        """Return a checker that verifies CRCs, marks damage, and yields this shard's rows and rows of light queues."""
        light = self._plan.multi_dispatch
        return Checker(crc=Crc.MARKS, shard=self._shard, shards=self._plan.shards, light=light)

    def begin(self, mark: int, *, intended: int) -> int:
        """Take over at *mark*, the shard's visible mark, and return it."""
        self._mark = mark
        self._forget_builders()
        if self._tombstones.refresh():
            self._drop_dead_queues()
        return mark

    def begin_rebuild(self, request: RebuildRequest, position: int) -> None:
        """Build only the requested queues, starting at *position*."""
        self._mark = position
        self._forget_builders()
        self._rebuilding = request.queues

    def end_rebuild(self) -> None:
        """Build all queues again."""
        self._rebuilding = None

    def disown(self) -> None:
        """No-op: a holder that resumes can only rewrite identical units."""

    def sync_from(self, mark: int) -> None:
        """Sync the files that may hold units of records at or above *mark*, and their extensions."""
        for topic, queue_id, batch in self._all_queues():
            files = self._files(topic, queue_id, batch)
            end = (find_batch_end if batch else find_simple_end)(files, mark)
            files.has_unsynced_name = True  # unknown, so assume it
            self.flush([(files, start) for start in files.starts if start + files.file_size > end])
            files.close()
            ext = None if batch else self._plan.existing_ext(topic, queue_id, self._storage)
            if ext is not None:
                self.flush([(ext, start) for start in ext.starts])
                ext.close()

    def resume_at(self, physical_end: int) -> int:
        """Return *physical_end*."""
        return physical_end

    def truncate(self, physical_end: int, marks: Marks) -> None:
        """Drop the units of records at or above *physical_end*."""
        self._forget_builders()
        for topic, queue_id, batch in self._all_queues():
            files = self._files(topic, queue_id, batch)
            ext = None if batch else self._plan.existing_ext(topic, queue_id, self._storage)
            truncate_queue(files, physical_end, batch=batch, ext=ext)
            files.close()
            if ext is not None:
                ext.close()

    def expire(self, log_min: int) -> int:
        """Delete this shard's queue files whose records are all below *log_min* and return how many."""
        deleted = 0
        for topic, queue_id, batch in self._all_queues():
            builder = self._builders.get((topic, queue_id))
            other = self._files(topic, queue_id, batch)
            files = other if builder is None or builder.files.folder != other.folder else builder.files
            gone = expire_queue(files, log_min, batch=batch)
            if builder is not None:
                builder.touched.difference_update(gone)
            if gone and not batch:
                self._expire_ext(topic, queue_id, files)
            deleted += len(gone)
            other.close()
        return deleted

    def _expire_ext(self, topic: str, queue_id: int, files: MappedFileQueue) -> None:
        """Delete files of the extension that no unit of the queue points at."""
        ext = self._plan.existing_ext(topic, queue_id, self._storage)
        address = first_address(files)
        if ext is not None and address is not None:
            ConsumeQueueExt(ext).truncate_by_min_address(address)
            ext.close()

    def _all_queues(self) -> Iterator[tuple[str, int, bool]]:
        """Yield (topic, queue id, is BatchConsumeQueue) of each queue of this shard that has a folder."""
        paths = self._plan.paths
        for folder, batch in ((paths.consume_queue, False), (paths.batch_consume_queue, True)):
            for queue in sorted(folder.glob("*/*")):
                if not (queue.is_dir() and queue.name.isdigit()):
                    continue
                if self._owns(queue.parent.name, int(queue.name)):
                    yield queue.parent.name, int(queue.name), batch

    def _owns(self, topic: str, queue_id: int) -> bool:
        return shard_of(topic.encode(), queue_id, self._plan.shards) == self._shard

    def _files(self, topic: str, queue_id: int, batch: bool) -> MappedFileQueue:
        size = self._plan.batch_consume_queue_size if batch else self._plan.consume_queue_size
        folder = self._plan.paths.queue(topic, queue_id, batch=batch)
        return MappedFileQueue(folder, size, self._storage, sync_names_later=True)

    def hold_back(self, part: LogPart) -> bool:
        """Return False: units are written sequentially, so batching saves nothing."""
        return False

    def apply(self, part: LogPart) -> int:
        """Build the units of *part* and return how many records it has."""
        for damage in part.damages:
            # Shard 0 alone reports undecodable places; only the queue's own shard sees bad properties.
            if self._shard == 0 or damage.reason == Fault.NUMBER.name:
                self._tell(damage.physical_offset, damage.size, damage.reason)
        if self._tombstones.refresh():
            self._let_go_of_builders()
            self._drop_dead_queues()
        own = part.requests
        if self._plan.multi_dispatch:
            own = own[own["owned"] != 0]
        groups = group_by_queue(part.buffer, own)
        is_partial = self._rebuilding is not None
        for i in range(len(groups)) if is_partial else self._open_queues.append(groups):
            run = self._living(groups.run(i))
            if run is not None and self._is_wanted(run):
                self._tell_faults(run)
                self._build(run)
        if self._plan.multi_dispatch:
            self._build_light(part)
        self._mark = part.end_offset
        return len(own)

    def _is_wanted(self, run: QueueRun) -> bool:
        return self._rebuilding is None or (run.topic, run.queue_id) in self._rebuilding

    def _build(self, run: QueueRun) -> None:
        builder = self._builder(run)
        if builder is None:
            self._tell_illegal_topic(run)
            return
        for oddity in builder.build(run.requests):
            self._tell_oddity(run, oddity)
        if isinstance(builder, ConsumeQueueBuilder) and not run.topic.startswith(LIGHT_PREFIX):
            self._open_queues.add(run.topic, run.queue_id, builder)

    def _build_light(self, part: LogPart) -> None:
        """Build units in this shard's light queues, whichever shard owns the records."""
        runs, misfits = light_runs(part.buffer, part.requests, is_batch=self._is_batch)
        for run in runs:
            if self._owns(run.topic, run.queue_id) and self._is_wanted(run):
                self._build(run)
        for row in misfits[misfits["owned"] != 0]:
            self._tell(int(row["physical_offset"]), int(row["message_size"]), "MULTI_DISPATCH")

    def _living(self, run: QueueRun) -> QueueRun | None:
        """Return *run* without records from before the topic's deletion; None if no record is left."""
        dead_end = self._tombstones.dead_end(run.topic)
        if run.requests["physical_offset"][0] >= dead_end:
            return run
        living = run.requests[run.requests["physical_offset"] >= dead_end]
        return run._replace(requests=living) if len(living) else None

    def _let_go_of_builders(self) -> None:
        """Sync and close all queues after a topic's deletion: they are reopened if it is created again."""
        self.flush(self.take_touched())
        self.close()

    def _drop_dead_queues(self) -> None:
        """Drop deleted topics' queues: a rebuild would not create them, and a broker would not know their type."""
        for topic in self._tombstones.topics:
            for folder in (self._plan.paths.consume_queue / topic, self._plan.paths.batch_consume_queue / topic):
                for queue in folder.glob("*"):
                    if queue.name.isdigit() and self._owns(topic, int(queue.name)):
                        self._drop_dead_queue(topic, int(queue.name))

    def _drop_dead_queue(self, topic: str, queue_id: int) -> None:
        """Delete the queue's files if all units predate the topic's deletion, for both queue types."""
        dead_end = self._tombstones.dead_end(topic)
        for batch in (False, True):
            folder = self._plan.paths.queue(topic, queue_id, batch=batch)
            if dead_end and folder.is_dir():
                files = self._files(topic, queue_id, batch)
                if is_all_below(files, dead_end, batch=batch):
                    for start in list(files.starts):
                        files.delete_file(start)
                    folder.rmdir()

    def _builder(self, run: QueueRun) -> QueueBuilder | None:
        key = (run.topic, run.queue_id)
        found = self._builders.get(key)
        if found is None and is_topic_name(run.topic) and run.queue_id >= 0:
            found = self._builders[key] = self._open(run.topic, run.queue_id)
        return found

    def _is_batch(self, topic: str) -> bool:
        config = self._topics.topics().get(topic)
        return config is not None and config.is_batch

    def _open(self, topic: str, queue_id: int) -> QueueBuilder:
        self._drop_dead_queue(topic, queue_id)
        batch = self._is_batch(topic)
        if self._plan.paths.queue(topic, queue_id, batch=not batch).is_dir():
            types = ("SimpleCQ", "BatchCQ") if batch else ("BatchCQ", "SimpleCQ")  # by the folder, by topics.json
            raise CorruptStoreError(
                f"The queue type of topic: {topic} should be {types[0]}, but is {types[1]}", topic=topic
            )
        files = self._files(topic, queue_id, batch)
        if batch:
            return BatchConsumeQueueBuilder(files, mark=self._mark)
        # A broker's light queues hold plain tags codes, never addresses of an extension.
        has_ext = self._plan.consume_queue_ext and not topic.startswith(LIGHT_PREFIX)
        ext = ConsumeQueueExt(self._plan.open_ext(topic, queue_id, self._storage)) if has_ext else None
        return ConsumeQueueBuilder(files, mark=self._mark, ext=ext)

    # -- reports of damage ------------------------------------------------------------------------------------------

    def _tell(self, physical_offset: int, size: int, reason: str, **where: str | int | None) -> None:
        self.damages += self._ledger.record(
            physical_offset=physical_offset,
            size=size,
            reason=reason,
            **where,  # type: ignore[arg-type]
        )

    def _tell_faults(self, run: QueueRun) -> None:
        faults = run.requests["fault"]
        if faults.any():
            for row in run.requests[faults != Fault.NONE]:
                self._tell_row(run, row, Fault(int(row["fault"])).name)

    def _tell_illegal_topic(self, run: QueueRun) -> None:
        for row in run.requests:
            self._tell_row(run, row, "TOPIC")

    def _tell_row(self, run: QueueRun, row: RequestArray, reason: str) -> None:
        self._tell(
            int(row["physical_offset"]),
            int(row["message_size"]),
            reason,
            topic=run.topic,
            queue_id=run.queue_id,
            queue_offset=int(row["queue_offset"]),
        )

    def _tell_oddity(self, run: QueueRun, oddity: Oddity) -> None:
        self.oddities += 1
        if oddity.reason in _UNBUILT:
            self._tell(
                oddity.physical_offset,
                oddity.size,
                oddity.reason,
                topic=run.topic,
                queue_id=run.queue_id,
                queue_offset=oddity.queue_offset,
            )

    # -- durability -------------------------------------------------------------------------------------------------

    def take_touched(self) -> list[tuple[MappedFileQueue, int]]:
        """Return the files written since the last call. The caller flushes them."""
        touched: list[tuple[MappedFileQueue, int]] = []
        for builder in self._builders.values():
            for part in (builder.ext, builder):
                if part is not None:
                    touched.extend((part.files, start) for start in part.touched)
                    part.touched.clear()
        return touched

    def flush(self, touched: list[tuple[MappedFileQueue, int]]) -> None:
        """Sync each file that still exists, and the folders of new queues."""
        folders: set[Path] = set()
        for files, start in touched:
            with contextlib.suppress(FileNotFoundError):  # expired meanwhile
                files.flush(start)
            if files.has_unsynced_name:
                folders.update((files.folder, *files.folder.parents[:2]))  # the queue's, its topic's, and their root
        for folder in sorted(folders):
            with contextlib.suppress(FileNotFoundError):
                self._storage.sync_folder(folder)
        for files, _ in touched:
            files.has_unsynced_name = False

    def close(self) -> None:
        """Close all files."""
        for builder in self._builders.values():
            builder.files.close()
            if builder.ext is not None:
                builder.ext.files.close()
        self._forget_builders()

    def _forget_builders(self) -> None:
        self._builders.clear()
        self._open_queues.clear()
