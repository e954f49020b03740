"""One store as readers see it: its log, its topics and queues, and how far they may be read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from tidemark.errors import QueueIllegalError, TopicNotFoundError
from tidemark.format.topic_name import is_topic_name
from tidemark.read.file_run import FileRun
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.watermark import AttachedWatermarkReader, Watermark, WatermarkReader
from tidemark.store.log_folders import LogFolders
from tidemark.store.paths import StorePaths
from tidemark.store.topics import TopicConfig, TopicsFile


class StoreReader:
    """Opens a store for reading. Writes nothing. Safe for several threads.

    state        of an attached store: where our own files about it lie (`StorePaths`)
    log_folders  where its CommitLog lies, if not in `commitlog`
    """

    def __init__(
        self,
        root: Path,
        *,
        state: Path | None = None,
        log_folders: LogFolders | None = None,
        refresh_s: float = 0.25,
    ) -> None:
        self.paths = StorePaths(root, log_folders, state)
        self.log = FileRun(*self.paths.log_folders.all)
        self.watermarks = (
            AttachedWatermarkReader(self.paths, self.log) if self.paths.is_attached else WatermarkReader(self.paths)
        )
        self._topics = TopicsFile(self.paths.topics)
        self._queues: dict[tuple[str, int, bool], QueueReader] = {}
        self._refresh_s = refresh_s
        self._refreshed = time.monotonic()

    def watermark(self) -> Watermark:
        """What may be read now. Files that were created or replaced are noticed within refresh_s."""
        now = time.monotonic()
        if now - self._refreshed > self._refresh_s:
            self._refreshed = now
            self.watermarks.refresh()
        return self.watermarks.read()

    def refresh(self) -> None:
        """Notice created and replaced files now; CorruptStoreError when the marks cannot be read."""
        self.watermarks.refresh()

    @property
    def log_min(self) -> int:
        """Physical offset where the log begins; grows as retention deletes files."""
        starts = self.log.listing().starts
        return starts[0] if starts else 0

    def let_go_of_deleted(self) -> None:
        """Close files that retention has deleted; for readers that nobody asks anything meanwhile."""
        self.log.let_go_of_deleted()
        for queue in list(self._queues.values()):
            queue.run.let_go_of_deleted()

    # -- topics ---------------------------------------------------------------------------------------------------

    def topics(self) -> dict[str, TopicConfig]:
        """All topics by name: those of topics.json, and those that only have queue folders."""
        topics = {name: topic for name, topic in self._topics.topics().items() if is_topic_name(name)}
        for name in _folders(self.paths.consume_queue):
            if name not in topics and is_topic_name(name) and self._has_queue_folder(name):
                topics[name] = self._topic_of_folders(name)
        return topics

    def topic(self, name: str) -> TopicConfig:
        """TopicNotFoundError when the store has none of this name."""
        found = self._topics.topics().get(name)
        if found is not None and is_topic_name(name):
            return found
        if is_topic_name(name) and self._has_queue_folder(name):
            return self._topic_of_folders(name)
        raise TopicNotFoundError(f"there is no topic {name}", topic=name)

    def _has_queue_folder(self, name: str) -> bool:
        return any(folder.isdecimal() for folder in _folders(self.paths.consume_queue / name))

    def _topic_of_folders(self, name: str) -> TopicConfig:
        """A topic that topics.json does not know counts as SimpleCQ (spec 1.7)."""
        return TopicConfig(name, read_queues=0, write_queues=0)

    def queue_ids(self, topic: TopicConfig) -> list[int]:
        """Its queues: those it is configured to have, and those that have a folder."""
        root = self.paths.batch_consume_queue if topic.is_batch else self.paths.consume_queue
        folders = {int(name) for name in _folders(root / topic.name) if name.isdecimal() and str(int(name)) == name}
        return sorted(folders | set(range(topic.queues)))

    # -- queues ---------------------------------------------------------------------------------------------------

    def queue(self, topic_name: str, queue_id: int) -> QueueReader:
        """TopicNotFoundError, or QueueIllegalError when the topic has no such queue."""
        topic = self.topic(topic_name)
        key = (topic_name, queue_id, topic.is_batch)
        found = self._queues.get(key)
        if found is None:
            folder = self.paths.queue(topic_name, queue_id, batch=topic.is_batch)
            if queue_id >= topic.queues and not folder.is_dir():
                raise QueueIllegalError(
                    f"topic {topic_name} has no queue {queue_id}", topic=topic_name, queue_id=queue_id
                )
            found = QueueReader(
                folder,
                topic=topic_name,
                queue_id=queue_id,
                batch=topic.is_batch,
                ext=None if topic.is_batch else self.paths.queue_ext(topic_name, queue_id),
                attached_log=self.log if self.paths.is_attached else None,
            )
            self._queues[key] = found
        return found

    def known_queue(self, topic_name: str, queue_id: int) -> QueueReader | None:
        """As `queue`, of one that somebody has asked for before; None else, or when its topic has gone."""
        topic = self._topics.topics().get(topic_name)
        return None if topic is None else self._queues.get((topic_name, queue_id, topic.is_batch))

    def queues(self, topic_name: str) -> list[QueueReader]:
        """All queues of a topic, by id."""
        return [self.queue(topic_name, queue_id) for queue_id in self.queue_ids(self.topic(topic_name))]

    def bounds(self, queue: QueueReader, watermark: Watermark) -> QueueBounds:
        """What of *queue* may be read."""
        return queue.bounds(watermark, log_min=self.log_min)


def _folders(path: Path) -> Iterable[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except FileNotFoundError:
        return []
