"""A shard of queues: dispatches walked parts to its builders."""

from __future__ import annotations

from collections.abc import Iterator

from tidemark.errors import CorruptStoreError
from tidemark.format.check import Checker, Crc, shard_of
from tidemark.format.dispatch_request import Fault, RequestArray
from tidemark.index.build import BatchConsumeQueueBuilder, ConsumeQueueBuilder, Oddity, QueueBuilder
from tidemark.index.dispatch import QueueRun, runs_by_queue
from tidemark.index.ledger import Ledger
from tidemark.index.log_walk import LogPart
from tidemark.index.truncate import is_all_below, truncate_queue
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.paths import is_topic_name
from tidemark.store.storage import Storage
from tidemark.store.tombstones import TombstonesFile
from tidemark.store.topics import TopicsFile

from .plan import EpochPlan

_UNBUILT = ("QUEUE_OFFSET", "BATCH_SIZE")  # oddities that are damage: the record got no unit


class QueueShard:
    """Builds the queues of one shard, for the holder of its lock. mark: the shard's visible mark."""

    def __init__(self, plan: EpochPlan, shard: int, storage: Storage) -> None:
        self._plan = plan
        self._shard = shard
        self._storage = storage
        self._topics = TopicsFile(plan.paths.topics)
        self._tombstones = TombstonesFile(plan.paths.tombstones)
        self._builders: dict[tuple[str, int], QueueBuilder] = {}
        self._ledger = Ledger(plan.paths.indexer, shard, storage)
        self._mark = 0
        self.damages = 0
        self.oddities = 0

    def checker(self) -> Checker:
        """The walk of this shard: its own rows only, their bodies verified, damaged ones marked."""
        return Checker(crc=Crc.MARKS, shard=self._shard, shards=self._plan.shards)

    def begin(self, mark: int, *, intended: int) -> int:
        """Take over at *mark*; where to build from."""
        self._mark = mark
        self._builders.clear()
        return mark

    def resume_at(self, physical_end: int) -> int:
        """Where to build from once units at or above *physical_end* are dropped."""
        return physical_end

    def truncate(self, physical_end: int) -> None:
        """Drop them."""
        self._builders.clear()
        for files, batch in self._all_queues():
            truncate_queue(files, physical_end, batch=batch)
            files.close()

    def _all_queues(self) -> Iterator[tuple[MappedFileQueue, bool]]:
        paths = self._plan.paths
        for folder, batch in ((paths.consume_queue, False), (paths.batch_consume_queue, True)):
            for queue in sorted(folder.glob("*/*")):
                if not (queue.is_dir() and queue.name.isdigit()):
                    continue
                if shard_of(queue.parent.name.encode(), int(queue.name), self._plan.shards) == self._shard:
                    yield self._files(queue.parent.name, int(queue.name), batch), batch

    def _files(self, topic: str, queue_id: int, batch: bool) -> MappedFileQueue:
        size = self._plan.batch_consume_queue_size if batch else self._plan.consume_queue_size
        return MappedFileQueue(self._plan.paths.queue(topic, queue_id, batch=batch), size, self._storage)

    def apply(self, part: LogPart) -> int:
        """Build everything of *part*; returns how many records."""
        if self._shard == 0:  # one shard tells about places that cannot be decoded
            for damage in part.damages:
                self._tell(damage.physical_offset, damage.size, damage.reason)
        if self._tombstones.refresh():
            self._let_go_of_builders()
        for whole_run in runs_by_queue(part.buffer, part.requests):
            run = self._living(whole_run)
            if run is None:
                continue
            self._tell_faults(run)
            builder = self._builder(run)
            if builder is None:
                self._tell_illegal_topic(run)
                continue
            for oddity in builder.build(run.requests):
                self._tell_oddity(run, oddity)
        self._mark = part.end_offset
        return len(part.requests)

    def _living(self, run: QueueRun) -> QueueRun | None:
        """The run without records of before the topic was deleted; None when nothing is left."""
        dead_end = self._tombstones.dead_end(run.topic)
        if run.requests["physical_offset"][0] >= dead_end:
            return run
        living = run.requests[run.requests["physical_offset"] >= dead_end]
        return run._replace(requests=living) if len(living) else None

    def _let_go_of_builders(self) -> None:
        """A topic was deleted: its queues are opened anew if it comes back."""
        self.flush(self.take_touched())
        self.close()

    def _drop_dead_queue(self, topic: str, queue_id: int) -> None:
        """Files that only hold units of before the topic was deleted go, of whatever type it was then."""
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

    def _open(self, topic: str, queue_id: int) -> QueueBuilder:
        self._drop_dead_queue(topic, queue_id)
        config = self._topics.topics().get(topic)
        batch = config is not None and config.is_batch
        if self._plan.paths.queue(topic, queue_id, batch=not batch).is_dir():
            types = ("BatchCQ", "SimpleCQ") if batch else ("SimpleCQ", "BatchCQ")
            raise CorruptStoreError(
                f"The queue type of topic: {topic} should be {types[0]}, but is {types[1]}", topic=topic
            )
        files = self._files(topic, queue_id, batch)
        if batch:
            return BatchConsumeQueueBuilder(files, mark=self._mark)
        return ConsumeQueueBuilder(files, mark=self._mark)

    # -- what is wrong ----------------------------------------------------------------------------------------------

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
        """Files written since the last call; the caller flushes them."""
        touched: list[tuple[MappedFileQueue, int]] = []
        for builder in self._builders.values():
            touched.extend((builder.files, start) for start in builder.touched)
            builder.touched.clear()
        return touched

    @staticmethod
    def flush(touched: list[tuple[MappedFileQueue, int]]) -> None:
        """fdatasync each."""
        for files, start in touched:
            files.flush(start)

    def close(self) -> None:
        """Close all files."""
        for builder in self._builders.values():
            builder.files.close()
        self._builders.clear()
