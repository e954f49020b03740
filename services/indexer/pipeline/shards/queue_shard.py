"""QueueShard: dispatches walked parts to the queues of one shard."""

from __future__ import annotations

from collections.abc import Callable

from tidemark.errors import CorruptStoreError
from tidemark.format.check import Checker, Crc
from tidemark.format.dispatch_request import Fault
from tidemark.format.topic_name import LIGHT_QUEUE_PREFIX, is_topic_name
from tidemark.index.build import BatchConsumeQueueBuilder, ConsumeQueueBuilder, QueueBuilder
from tidemark.index.consume_queue_ext import ConsumeQueueExt
from tidemark.index.dispatch import QueueGroups, QueueRun, group_by_queue
from tidemark.index.expire import expire_queue
from tidemark.index.ledger import Ledger
from tidemark.index.light_queues import light_runs
from tidemark.index.log_walk import LogPart
from tidemark.index.open_queues import OpenQueues
from tidemark.index.rebuild_request import RebuildRequest
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.marks import Marks
from tidemark.store.originals.topics import TopicsFile
from tidemark.store.storage import Storage

from ..plan import EpochPlan
from .damage_report import DamageReport
from .deleted_topics import DeletedTopics
from .queue_folders import QueueFolder, QueueFolders


class QueueShard:
    """Builder of one shard's queues. The caller holds its lock."""

    def __init__(self, plan: EpochPlan, shard: int, storage: Storage) -> None:
        self._plan = plan
        self._shard = shard
        self._storage = storage
        self._topics = TopicsFile(plan.paths.topics)
        self._folders = QueueFolders(plan, shard, storage)
        self._deleted = DeletedTopics(plan, self._folders)
        self._report = DamageReport(Ledger(plan.paths.indexer, shard, storage))
        self._builders: dict[tuple[str, int], QueueBuilder] = {}
        self._open_queues = OpenQueues()
        self._mark = 0
        self._rebuilding: frozenset[tuple[str, int]] | None = None  # the only queues that are built; None: all

    @property
    def damages(self) -> int:
        """Places of the log that got no unit."""
        return self._report.damages

    @property
    def oddities(self) -> int:
        """Records that differ from what the queue expected."""
        return self._report.oddities

    def checker(self) -> Checker:
        """Return a checker that verifies CRCs, marks damage, and yields this shard's rows and rows of light queues."""
        light = self._plan.multi_dispatch
        return Checker(crc=Crc.MARKS, shard=self._shard, shards=self._plan.shards, light=light)

    # -- taking over, cutting, deleting -----------------------------------------------------------------------------

    def begin(self, mark: int, *, intended: int) -> int:
        """Take over at *mark*, the shard's visible mark, and return it."""
        self._mark = mark
        self._forget_builders()
        if self._deleted.refresh():
            self._deleted.drop_queues()
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
        self._folders.sync_from(mark)

    def resume_at(self, physical_end: int) -> int:
        """Return *physical_end*."""
        return physical_end

    def truncate(self, physical_end: int, marks: Marks) -> None:
        """Drop the units of records at or above *physical_end*."""
        self._forget_builders()
        self._folders.truncate(physical_end)

    def expire(self, log_min: int) -> int:
        """Delete this shard's queue files whose records are all below *log_min* and return how many."""
        return sum(self._expire_queue(queue, log_min) for queue in self._folders.all())

    def _expire_queue(self, queue: QueueFolder, log_min: int) -> int:
        builder = self._builders.get((queue.topic, queue.queue_id))
        other = self._folders.open(queue)
        files = other if builder is None or builder.files.folder != other.folder else builder.files
        gone = expire_queue(files, log_min, batch=queue.batch)
        if builder is not None:
            builder.touched.difference_update(gone)
        if gone and not queue.batch:
            self._folders.expire_ext(queue, files)
        other.close()
        return len(gone)

    # -- building ---------------------------------------------------------------------------------------------------

    def hold_back(self, part: LogPart) -> bool:
        """Return False: units are written sequentially, so batching saves nothing."""
        return False

    def apply(self, part: LogPart) -> int:
        """Build the units of *part* and return how many records it has."""
        for damage in part.damages:
            # Shard 0 alone reports undecodable places; only the queue's own shard sees bad properties.
            if self._shard == 0 or damage.reason == Fault.NUMBER.name:
                self._report.report(damage.physical_offset, damage.size, damage.reason)
        if self._deleted.refresh():
            self._close_after_sync()
            self._deleted.drop_queues()
        own = part.requests
        if self._plan.multi_dispatch:
            own = own[own["owned"] != 0]
        count = len(own)
        if count:
            self._build_groups(group_by_queue(part.buffer, own))
        if self._plan.multi_dispatch:
            self._build_light(part)
        self._mark = part.end_offset
        return count

    def _build_groups(self, groups: QueueGroups) -> None:
        is_partial = self._rebuilding is not None
        for i in range(len(groups)) if is_partial else self._open_queues.append(groups):
            run = self._deleted.living(groups.run(i))
            if run is not None and self._is_wanted(run):
                self._report.report_faults(run)
                self._build(run)

    def _is_wanted(self, run: QueueRun) -> bool:
        return self._rebuilding is None or (run.topic, run.queue_id) in self._rebuilding

    def _build(self, run: QueueRun) -> None:
        builder = self._builder(run)
        if builder is None:
            self._report.report_illegal_topic(run)
            return
        for oddity in builder.build(run.requests):
            self._report.report_oddity(run, oddity)
        if isinstance(builder, ConsumeQueueBuilder) and not run.topic.startswith(LIGHT_QUEUE_PREFIX):
            self._open_queues.add(run.topic, run.queue_id, builder)

    def _build_light(self, part: LogPart) -> None:
        """Build units in this shard's light queues, whichever shard owns the records."""
        runs, misfits = light_runs(part.buffer, part.requests, is_batch=self._is_batch)
        for run in runs:
            if self._folders.owns(run.topic, run.queue_id) and self._is_wanted(run):
                self._build(run)
        for row in misfits[misfits["owned"] != 0]:
            self._report.report(int(row["physical_offset"]), int(row["message_size"]), "MULTI_DISPATCH")

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
        self._deleted.drop_queue(topic, queue_id)
        batch = self._is_batch(topic)
        if self._plan.paths.queue(topic, queue_id, batch=not batch).is_dir():
            types = ("SimpleCQ", "BatchCQ") if batch else ("BatchCQ", "SimpleCQ")  # by the folder, by topics.json
            raise CorruptStoreError(
                f"The queue type of topic: {topic} should be {types[0]}, but is {types[1]}", topic=topic
            )
        files = self._folders.open(QueueFolder(topic, queue_id, batch))
        if batch:
            return BatchConsumeQueueBuilder(files, mark=self._mark)
        # A broker's light queues hold plain tags codes, never addresses of an extension.
        has_ext = self._plan.consume_queue_ext and not topic.startswith(LIGHT_QUEUE_PREFIX)
        ext = ConsumeQueueExt(self._plan.open_ext(topic, queue_id, self._storage)) if has_ext else None
        return ConsumeQueueBuilder(files, mark=self._mark, ext=ext)

    # -- durability -------------------------------------------------------------------------------------------------

    def take_sync(self) -> Callable[[], None]:
        """Return a function that syncs the files written since the last call."""
        written: list[tuple[MappedFileQueue, int]] = []
        for builder in self._builders.values():
            for part in (builder.ext, builder):
                if part is not None:
                    written.extend((part.files, start) for start in part.touched)
                    part.touched.clear()
        return lambda: self._folders.sync(written)

    def _close_after_sync(self) -> None:
        """Sync and close all queues after a topic's deletion: they are reopened if it is created again."""
        self.take_sync()()
        self.close()

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
