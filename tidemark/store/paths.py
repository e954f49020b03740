"""Which file lies where below a store's root (docs/format.md §1; ours below `tidemark/`, one folder an owner)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tidemark.format.topic_name import is_topic_name
from tidemark.store.log_folders import LogFolders


def require_outside(state: Path, root: Path) -> None:
    """ValueError when writing below *state* would write below *root*, of a store that is somebody else's."""
    if state.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"the state folder {state} lies in the attached store {root}, where nothing may be written")


@dataclass(frozen=True)
class StorePaths:
    """Paths of one store.

    other_log_folders  where its CommitLog lies, if not in `commitlog`
    state              where files of ours lie that a store of our own has below its root; None: there. A store whose
                       state lies elsewhere is attached: somebody else's, of which nothing is ever written
    """

    root: Path
    other_log_folders: LogFolders | None = None
    state: Path | None = None

    @property
    def is_attached(self) -> bool:
        """Whether the root is somebody else's."""
        return self.state is not None

    @property
    def own(self) -> Path:
        """Root of what we write ourselves beside RocketMQ's files."""
        return self.root if self.state is None else self.state

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
        """How far delayed messages are delivered."""
        return self.root / "config" / "delayOffset.json"

    @property
    def consumer_offsets(self) -> Path:
        return self.own / "config" / "consumerOffset.json"

    @property
    def broker_consumer_offsets(self) -> Path | None:
        """Of an attached store: the offsets that its broker keeps for its own groups."""
        return self.root / "config" / "consumerOffset.json" if self.is_attached else None

    @property
    def own_index(self) -> Path | None:
        """Of an attached store: index files of keys that the broker does not index."""
        return self.own / "index" if self.is_attached else None

    @property
    def format_file(self) -> Path:
        """Which version of our files this store has."""
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
    def lost_units(self) -> Path:
        """Places of queues that pulls had to pass over."""
        return self.query / "lost_units.jsonl"

    @property
    def members(self) -> Path:
        """Members of groups, from one query process to the next."""
        return self.query / "members.json"

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

    def queue_ext(self, topic: str, queue_id: int) -> Path:
        """Folder of the extension of one ConsumeQueue; ValueError as `queue`."""
        return self.consume_queue_ext / self.queue(topic, queue_id, batch=False).relative_to(self.consume_queue)

    def queue(self, topic: str, queue_id: int, *, batch: bool) -> Path:
        """Folder of one queue's files; ValueError for a topic that cannot be a folder."""
        if not is_topic_name(topic) or queue_id < 0:
            raise ValueError(f"no folder for topic {topic!r} queue {queue_id}")
        return (self.batch_consume_queue if batch else self.consume_queue) / topic / str(queue_id)
