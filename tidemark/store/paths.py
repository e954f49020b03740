"""Which file lies where below a store's root (spec 1.1; ours below `tidemark/`, one folder an owner)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tidemark.store.log_folders import LogFolders

_SAFE_TOPIC = re.compile(r"^[%|a-zA-Z0-9_-]{1,255}$")


def is_topic_name(topic: str) -> bool:
    """Whether a topic's name can be a folder: RocketMQ's characters, none of them a dot or a slash (spec 10.1)."""
    return _SAFE_TOPIC.fullmatch(topic) is not None


@dataclass(frozen=True)
class StorePaths:
    """Paths of one store. other_log_folders: where its CommitLog lies, if not in `commitlog`."""

    root: Path
    other_log_folders: LogFolders | None = None

    @property
    def commit_log(self) -> Path:
        return self.root / "commitlog"

    @property
    def log_folders(self) -> LogFolders:
        """Where the CommitLog's files lie."""
        return self.other_log_folders or LogFolders((self.commit_log,))

    @property
    def consume_queue(self) -> Path:
        return self.root / "consumequeue"

    @property
    def batch_consume_queue(self) -> Path:
        return self.root / "batchconsumequeue"

    @property
    def index(self) -> Path:
        return self.root / "index"

    @property
    def checkpoint(self) -> Path:
        return self.root / "checkpoint"

    @property
    def abort(self) -> Path:
        return self.root / "abort"

    @property
    def lock(self) -> Path:
        return self.root / "lock"

    @property
    def topics(self) -> Path:
        return self.root / "config" / "topics.json"

    @property
    def consumer_offsets(self) -> Path:
        return self.root / "config" / "consumerOffset.json"

    @property
    def format_file(self) -> Path:
        """Which version of our files this store has."""
        return self.root / "tidemark" / "format"

    @property
    def writer(self) -> Path:
        """The writer's own folder."""
        return self.root / "tidemark" / "writer"

    @property
    def indexer(self) -> Path:
        """The pipeline's own folder."""
        return self.root / "tidemark" / "indexer"

    @property
    def query(self) -> Path:
        """The query service's own folder."""
        return self.root / "tidemark" / "query"

    @property
    def terms(self) -> Path:
        return self.writer / "terms"

    @property
    def flushed(self) -> Path:
        """How far the log is synced."""
        return self.writer / "flushed"

    @property
    def next_offsets(self) -> Path:
        """Next offset of every queue, as of a position in the log."""
        return self.writer / "queue_offsets"

    @property
    def tombstones(self) -> Path:
        """Topics that were deleted."""
        return self.writer / "tombstones.json"

    @property
    def marks(self) -> Path:
        return self.indexer / "marks"

    def queue(self, topic: str, queue_id: int, *, batch: bool) -> Path:
        """Folder of one queue's files; ValueError for a topic that cannot be a folder."""
        if not is_topic_name(topic) or queue_id < 0:
            raise ValueError(f"no folder for topic {topic!r} queue {queue_id}")
        return (self.batch_consume_queue if batch else self.consume_queue) / topic / str(queue_id)
