"""Paths of a store's files (docs/format.md §1). Ours are below `tidemark/`, in one folder per owner."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tidemark.format.topic_name import is_topic_name
from tidemark.store.log_folders import LogFolders


def require_outside(state: Path, root: Path) -> None:
    """Raise ValueError if *state* is inside *root*, the root of an attached store, which is never written."""
    if state.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"the state folder {state} is inside the attached store {root}: choose a folder outside")


def queue_folder(topic: str, queue_id: int) -> str:
    """Return the folder of one queue below that of all queues. ValueError: the topic or queue id is invalid."""
    if not is_topic_name(topic) or queue_id < 0:
        raise ValueError(f"no folder for topic {topic!r} queue {queue_id}: the topic or queue id is invalid")
    return os.path.join(topic, str(queue_id))


@dataclass(frozen=True)
class StorePaths:
    """Paths of one store.

    other_log_folders  the folders of its CommitLog, if not `commitlog`
    state              folder of our own files; None: the root. With a folder, the store is attached: it belongs to
                       another program and is never written
    """

    root: Path
    other_log_folders: LogFolders | None = None
    state: Path | None = None

    @property
    def is_attached(self) -> bool:
        """True if the store belongs to another program."""
        return self.state is not None

    @property
    def own(self) -> Path:
        """Root of our own files, which RocketMQ does not have."""
        return self.root if self.state is None else self.state

    @property
    def commit_log(self) -> Path:
        return self.root / "commitlog"

    @property
    def log_folders(self) -> LogFolders:
        """Folders of the CommitLog."""
        return self.other_log_folders or LogFolders((self.commit_log,))

    @property
    def consume_queue(self) -> Path:
        return self.root / "consumequeue"

    @property
    def consume_queue_ext(self) -> Path:
        return self.root / "consumequeue_ext"

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
    def delay_offsets(self) -> Path:
        """File with the offsets up to which delayed messages are delivered."""
        return self.root / "config" / "delayOffset.json"

    @property
    def consumer_offsets(self) -> Path:
        return self.own / "config" / "consumerOffset.json"

    @property
    def broker_consumer_offsets(self) -> Path:
        """File with the offsets of a broker's groups: of the broker of an attached store, or of the followed one."""
        return (self.root / "config" if self.is_attached else self.follow) / "consumerOffset.json"

    @property
    def own_index(self) -> Path | None:
        """Folder of index files for keys that the broker does not index, with an attached store; otherwise None."""
        return self.own / "index" if self.is_attached else None

    @property
    def format_file(self) -> Path:
        """File with the version of our files."""
        return self.root / "tidemark" / "format"

    @property
    def writer(self) -> Path:
        """The writer's own folder."""
        return self.own / "tidemark" / "writer"

    @property
    def indexer(self) -> Path:
        """The pipeline's own folder."""
        return self.own / "tidemark" / "indexer"

    @property
    def query(self) -> Path:
        """The query service's own folder."""
        return self.own / "tidemark" / "query"

    @property
    def replication(self) -> Path:
        """Folder of a member of a replication group."""
        return self.own / "tidemark" / "replication"

    @property
    def follow(self) -> Path:
        """Folder of a store that follows a RocketMQ broker."""
        return self.own / "tidemark" / "follow"

    @property
    def lost_units(self) -> Path:
        """File with the places of queues that pulls skipped because their units were lost."""
        return self.query / "lost_units.jsonl"

    @property
    def members(self) -> Path:
        """File with the members of groups, which one query process hands to the next."""
        return self.query / "members.json"

    @property
    def writer_clients(self) -> Path:
        """File with the members of the groups of RocketMQ's clients at the writer."""
        return self.writer / "clients.json"

    @property
    def query_clients(self) -> Path:
        """File with the members of the groups of RocketMQ's clients at the query service."""
        return self.query / "clients.json"

    @property
    def terms(self) -> Path:
        return self.writer / "terms"

    @property
    def flushed(self) -> Path:
        """File with the offset up to which the log is synced."""
        return self.writer / "flushed"

    @property
    def next_offsets(self) -> Path:
        """File with the next offset of every queue at a position of the log."""
        return self.writer / "queue_offsets"

    @property
    def tombstones(self) -> Path:
        """File with the deleted topics."""
        return self.writer / "tombstones.json"

    @property
    def marks(self) -> Path:
        return self.indexer / "marks"

    def queue_ext(self, topic: str, queue_id: int) -> Path:
        """Return the folder of one ConsumeQueue's extension. Raises ValueError as `queue` does."""
        return self.consume_queue_ext / queue_folder(topic, queue_id)

    def queue(self, topic: str, queue_id: int, *, batch: bool) -> Path:
        """Return the folder of one queue's files. Raises ValueError as `queue_folder` does."""
        return (self.batch_consume_queue if batch else self.consume_queue) / queue_folder(topic, queue_id)
