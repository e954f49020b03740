"""StoreReader: one store for reading: its log, topics, queues and watermark."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from tidemark.errors import CorruptStoreError, QueueIllegalError, TopicNotFoundError
from tidemark.format.topic_name import is_topic_name
from tidemark.read.file_run import FileRun
from tidemark.read.queue_reader import QueueBounds, QueueReader
from tidemark.read.watermark import AttachedWatermarkReader, OnRegressed, Watermark, WatermarkFloor, WatermarkReader
from tidemark.store.log_folders import LogFolders
from tidemark.store.originals.tombstones import Tombstone, TombstonesFile
from tidemark.store.originals.topics import TopicConfig, TopicsFile
from tidemark.store.paths import StorePaths, queue_folder


class Catalog(NamedTuple):
    """The topics of topics.json by name, and the deleted topics, at one moment."""

    topics: Mapping[str, TopicConfig]
    tombstones: Mapping[str, Tombstone]


class StoreReader:
    """A store opened for reading. Writes nothing. Thread-safe.

    state         for an attached store: folder of our own files about it (`StorePaths`)
    log_folders   folders of its CommitLog, if not `commitlog`
    on_regressed  called once if the marks go back although the log was not truncated
    """

    def __init__(
        self,
        root: Path,
        *,
        state: Path | None = None,
        log_folders: LogFolders | None = None,
        refresh_s: float = 0.25,
        on_regressed: OnRegressed | None = None,
    ) -> None:
        self.paths = StorePaths(root, log_folders, state)
        self._root, self._batch_root, self._ext_root = (  # as text: a Path takes longer than the opening of a queue
            os.fspath(root)
            for root in (self.paths.consume_queue, self.paths.batch_consume_queue, self.paths.consume_queue_ext)
        )
        self.log = FileRun(*self.paths.log_folders.all)
        self.watermarks = (
            AttachedWatermarkReader(self.paths, self.log) if self.paths.is_attached else WatermarkReader(self.paths)
        )
        self._topics = TopicsFile(self.paths.topics)
        self._tombstones = TombstonesFile(self.paths.tombstones)
        self._legal_topics: tuple[Mapping[str, TopicConfig] | None, Mapping[str, TopicConfig]] = (None, {})
        self._queues: dict[tuple[str, int, bool], QueueReader] = {}
        self._configured_queues: dict[tuple[str, int], tuple[TopicConfig, QueueReader]] = {}
        self._floor = None if self.paths.is_attached else WatermarkFloor(on_regressed)
        self._floor_lock = threading.Lock()
        self._refresh_s = refresh_s
        self._refreshed = time.monotonic()

    def watermark(self) -> Watermark:
        """Return the readable end of the log, which decreases only if the writer has truncated the log.

        Created and replaced files are noticed within refresh_s.
        """
        now = time.monotonic()
        if now - self._refreshed > self._refresh_s:
            self._refreshed = now
            self.watermarks.refresh()
        if self._floor is None:  # a broker may truncate its log without one of our terms
            return self.watermarks.read()
        with self._floor_lock:
            seen = self.watermarks.read()
            return self._floor.hold(seen, self.watermarks.terms, lambda: self.log.listing().end)

    def refresh(self) -> None:
        """Notice created and replaced files now. Raises CorruptStoreError if the marks cannot be read."""
        self.watermarks.refresh()

    @property
    def log_min(self) -> int:
        """Physical offset of the log's first byte; increases as retention deletes files."""
        starts = self.log.listing().starts
        return starts[0] if starts else 0

    def close_deleted(self) -> None:
        """Close files that retention has deleted; for readers that are idle."""
        self.log.close_deleted()
        for queue in list(self._queues.values()):
            queue.run.close_deleted()

    # -- topics ---------------------------------------------------------------------------------------------------
    #
    # Deletion and creation are effective as soon as the writer has answered, so both files are checked at each call, or
    # once per request with a `Catalog`. topics.json is read first. The writer saves a tombstone before it removes the
    # topic, so the tombstones are never older than the topics with which they are used.

    def catalog(self) -> Catalog | None:
        """Return the current topics and tombstones, for a request that reads many queues.

        None if a file cannot be read: the request then reads it for each queue, and reports the error.
        """
        try:
            topics = self._configured()
            return Catalog(topics, self._tombstones.current())
        except (CorruptStoreError, OSError):
            return None

    def is_current(self, catalog: Catalog) -> bool:
        """Return True if no topic was deleted since *catalog* was read."""
        return self._tombstones.current() is catalog.tombstones

    def topics(self) -> dict[str, TopicConfig]:
        """Return all topics by name: those of topics.json, and those that only have queue folders."""
        topics = dict(self._configured())
        deleted = self._tombstones.current()
        for name in _folders(self.paths.consume_queue):
            if name not in topics and name not in deleted and is_topic_name(name) and self._has_queue_folder(name):
                topics[name] = self._topic_of_folders(name)
        return topics

    def topic(self, name: str, catalog: Catalog | None = None) -> TopicConfig:
        """Return a topic, as of *catalog* or now. Raises TopicNotFoundError if it does not exist."""
        found = (self._configured() if catalog is None else catalog.topics).get(name)
        if found is not None:
            return found
        if is_topic_name(name) and name not in self._tombstones.current() and self._has_queue_folder(name):
            return self._topic_of_folders(name)
        raise TopicNotFoundError(f"topic {name} does not exist", topic=name)

    def _configured(self) -> Mapping[str, TopicConfig]:
        """Return the topics of topics.json whose names are legal. The mapping is shared: do not change it."""
        topics = self._topics.topics()
        seen, legal = self._legal_topics
        if topics is not seen:
            legal = {name: topic for name, topic in topics.items() if is_topic_name(name)}
            self._legal_topics = topics, legal  # one assignment: several threads may read
        return legal

    def dead_end(self, topic_name: str) -> int:
        """Return the physical offset below which the topic's records are dead due to its deletion; otherwise 0."""
        stone = self.tombstone(topic_name)
        return 0 if stone is None else stone.physical_offset

    def first_offset(self, topic_name: str, queue_id: int) -> int:
        """Return the queue offset at which the topic begins: greater than 0 if a topic of this name was deleted."""
        stone = self.tombstone(topic_name)
        return 0 if stone is None else stone.next_offset(queue_id)

    def tombstone(self, topic_name: str, catalog: Catalog | None = None) -> Tombstone | None:
        """Return the tombstone of a deleted topic, even if it was created again; otherwise None."""
        return (self._tombstones.current() if catalog is None else catalog.tombstones).get(topic_name)

    def _has_queue_folder(self, name: str) -> bool:
        return any(folder.isdecimal() for folder in _folders(self.paths.consume_queue / name))

    def _topic_of_folders(self, name: str) -> TopicConfig:
        """Return a SimpleCQ topic, the default for topics missing in topics.json (docs/format.md §9)."""
        return TopicConfig(name, read_queues=0, write_queues=0)

    def queue_ids(self, topic: TopicConfig) -> list[int]:
        """Return the queue ids: the configured ones, and others whose folder has live records."""
        root = self.paths.batch_consume_queue if topic.is_batch else self.paths.consume_queue
        folders = {int(name) for name in _folders(root / topic.name) if name.isdecimal() and str(int(name)) == name}
        others = {queue_id for queue_id in folders if queue_id >= topic.queues and self._is_alive(topic, queue_id)}
        return sorted(others | set(range(topic.queues)))

    def _is_alive(self, topic: TopicConfig, queue_id: int) -> bool:
        """Return True if a queue beyond the configured ones exists and is not left over from a deleted topic."""
        if not self.paths.queue(topic.name, queue_id, batch=topic.is_batch).is_dir():
            return False
        dead_end = self.dead_end(topic.name)
        last = self._reader(topic, queue_id).run.last_solid() if dead_end else None
        return dead_end == 0 or (last is not None and int(last[1]["physical_offset"][0]) >= dead_end)

    # -- queues ---------------------------------------------------------------------------------------------------

    def queue(self, topic_name: str, queue_id: int, catalog: Catalog | None = None) -> QueueReader:
        """Return a queue. Raises TopicNotFoundError, or QueueIllegalError if the topic has no such queue.

        catalog: for the topic; default: the current one.
        """
        topic = self.topic(topic_name, catalog)
        found = self._configured_queues.get((topic_name, queue_id))
        if found is not None and found[0] is topic:
            return found[1]
        if queue_id >= topic.queues and not self._is_alive(topic, queue_id):
            raise QueueIllegalError(f"topic {topic_name} has no queue {queue_id}", topic=topic_name, queue_id=queue_id)
        reader = self._reader(topic, queue_id)
        if queue_id < topic.queues:  # whether another one exists depends on its files
            self._configured_queues[topic_name, queue_id] = topic, reader
        return reader

    def _reader(self, topic: TopicConfig, queue_id: int) -> QueueReader:
        key = (topic.name, queue_id, topic.is_batch)
        found = self._queues.get(key)
        if found is None:
            folder = queue_folder(topic.name, queue_id)
            found = self._queues[key] = QueueReader(
                os.path.join(self._batch_root if topic.is_batch else self._root, folder),
                topic=topic.name,
                queue_id=queue_id,
                batch=topic.is_batch,
                ext=None if topic.is_batch else os.path.join(self._ext_root, folder),
                log=self.log,
                attached_log=self.log if self.paths.is_attached else None,
            )
        return found

    def known_queue(self, topic_name: str, queue_id: int, topic: TopicConfig | None = None) -> QueueReader | None:
        """Return a queue that was requested before; None otherwise, and after its topic was deleted.

        topic: the topic if the caller has just read it.
        """
        topic = topic or self._configured().get(topic_name)
        if topic is None or queue_id >= topic.queues:
            return None
        return self._queues.get((topic_name, queue_id, topic.is_batch))

    def queues(self, topic_name: str) -> list[QueueReader]:
        """Return all queues of a topic, by id."""
        return [self.queue(topic_name, queue_id) for queue_id in self.queue_ids(self.topic(topic_name))]

    def bounds(self, queue: QueueReader, watermark: Watermark) -> QueueBounds:
        """Return the readable part of *queue*."""
        return queue.bounds(watermark, log_min=self.log_min, tombstone=self.tombstone(queue.topic))


def _folders(path: Path) -> Iterable[str]:
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir()]
    except FileNotFoundError:
        return []
