"""StoreReading: what a consumer reads of one store: its queues, their positions, and its place in the group there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from tidemark.client.consumer.group_member import GroupMember
from tidemark.client.consumer.handout import Handout
from tidemark.client.consumer.offset_committer import OffsetCommitter
from tidemark.client.consumer.open_page_source import PullSource
from tidemark.client.consumer.page_buffer import OutOfRange, PageBuffer
from tidemark.client.consumer.program import Program
from tidemark.client.consumer.queue_assignment import AllQueues, NamedQueues, QueueAssignment
from tidemark.client.consumer.queue_cursor import Cursors
from tidemark.client.consumer.start_offsets import Place, StartOffsets
from tidemark.client.received_message import StoreQueue, TopicQueue, queue_of_store
from tidemark.client.rest.query import Query
from tidemark.client.wire.wire import Wire
from tidemark.errors import OffsetError
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    from tidemark.client.rest.arrow_page import TablePage


class Target(NamedTuple):
    """An offset to seek to. is_earliest: it was the offset of the queue's first message."""

    offset: int
    is_earliest: bool = False


@dataclass(frozen=True)
class ReadingOptions:
    """The arguments of `Consumer` that each of its stores needs. Either topics or queues."""

    topics: list[str]
    queues: list[TopicQueue]
    group: str | None
    folder: str | Path | None
    start: Place
    tag: str | list[str] | None
    auto_commit: bool
    auto_commit_interval_s: float
    out_of_range: OutOfRange
    max_messages: int | None
    max_bytes: int | None
    strategy: Literal["averagely", "consistent_hash"]
    session_timeout_s: float | None
    max_poll_interval_s: float
    timeout_s: float
    credentials: Credentials | None
    wire: Wire

    @property
    def own_topics(self) -> frozenset[str]:
        """The topics whose messages the program wants; those of retries are not among them."""
        return frozenset({*self.topics, *(queue.topic for queue in self.queues)})

    def queues_in(self, store: str) -> list[TopicQueue]:
        """Return the queues to read in *store*: those that name it, and those that name none."""
        return [TopicQueue(*queue) for queue in self.queues if getattr(queue, "store", store) == store]


class StoreReading:
    """One store of a consumer. url: of its query service. store: as in `StoreQueue`; empty if it is the only store."""

    def __init__(self, url: str | None, options: ReadingOptions, program: Program, *, store: str = "") -> None:
        self.store = store
        self.query = Query(url, timeout_s=options.timeout_s, credentials=options.credentials)
        self._options = options
        self._program = program
        self._source = PullSource(
            self.query.url,
            options.folder,
            options.tag,
            options.max_messages,
            options.max_bytes,
            options.timeout_s,
            options.credentials,
            options.own_topics,
            options.wire,
        )
        self.assigned = self._assigned()
        self.committer = OffsetCommitter(
            self.assigned,
            interval_s=options.auto_commit_interval_s,
            is_automatic=options.auto_commit and options.group is not None,
            first_unfinished=self._first_unfinished,
        )
        self.buffer = PageBuffer(
            self.assigned,
            make_pulls=self._source.open,
            starts=StartOffsets(
                self.query,
                options.start,
                group=options.group,
                topics=options.own_topics,
                named=options.queues_in(store),
                end_of=self._source.stored_end if options.folder is not None else None,
            ),
            reset=self._reset,
            on_lost=self._lose,
            on_new=lambda queues: program.welcome(self._named(queues)),
            store=store,
        )

    def _assigned(self) -> QueueAssignment:
        options = self._options
        if options.queues:
            return NamedQueues(self.query, options.queues_in(self.store), options.group)
        if options.group is None:
            return AllQueues(self.query, options.topics, is_one_of_several=bool(self.store))
        timeout_s = options.session_timeout_s
        return GroupMember(
            self.query,
            options.group,
            options.topics,
            strategy=options.strategy,
            session_timeout_ms=None if timeout_s is None else int(timeout_s * 1000),
            max_poll_interval_s=options.max_poll_interval_s,
            on_change=self._wake,
        )

    def _wake(self) -> None:
        self.buffer.wake()

    def _named(self, queues: Iterable[TopicQueue]) -> frozenset[TopicQueue]:
        return frozenset(queue_of_store(queue, self.store) for queue in queues)

    @property
    def queues(self) -> frozenset[TopicQueue]:
        """The queues that are read now."""
        return self._named(self.buffer.cursors)

    def has(self, queue: TopicQueue) -> bool:
        """Return True if *queue*, as the program names it, is one of this store."""
        return (queue.store if isinstance(queue, StoreQueue) else "") == self.store

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def follow(self) -> None:
        """Commit at intervals, and follow the assignment of queues."""
        self.committer.commit_if_due(self.buffer.cursors)
        self.buffer.follow()
        self.record()

    def record(self) -> None:
        """Commit resolved starts, resets and seeks, so that a restart begins at the same position."""
        if self.buffer.decided:
            if self._options.group is None:
                self.buffer.decided.clear()
            else:
                self.committer.record(self.buffer.cursors, self.buffer.decided)

    def fetch(self, timeout_s: float) -> bool:
        """Buffer the messages that arrive, for at most *timeout_s*; return False if nothing has arrived."""
        has_arrived = False
        for fetched in self.buffer.wait(timeout_s):
            has_arrived = True
            self.buffer.add(fetched)
        self.record()
        return has_arrived

    def take_tables(self, pages: list[TablePage], handout: Handout, timeout_s: float) -> bool:
        """Add the tables that arrive within *timeout_s* to *pages*, and lend them by *handout*.

        Return False if nothing has arrived.
        """
        has_arrived = False
        for fetched in self.buffer.wait(timeout_s):
            has_arrived = True
            page = self.buffer.answer(fetched, lambda fetched: fetched.table())
            if page is not None:
                cursor = self.buffer.cursor(page.queue)
                handout.lend_of(cursor)
                cursor.pass_to(page.next_offset)
                if page.table.num_rows:
                    pages.append(page._replace(queue=cursor.named))
        self.record()
        return has_arrived

    # ── positions ───────────────────────────────────────────────────────────────────────────────────────────────────

    def resolve(self, queue: tuple[str, int], place: Place) -> Target:
        """Return the current offset of *place*; raise KeyError for a queue that is not read."""
        return self._resolve(self.buffer.cursor(queue).queue, place)

    def _resolve(self, queue: TopicQueue, place: Place) -> Target:
        if isinstance(place, datetime):
            return Target(int(self.query.offset_at(*queue, int(place.timestamp() * 1000))["offset"]))
        if isinstance(place, int):
            return Target(place)
        if place not in ("earliest", "latest"):
            raise ValueError(f"place must be an offset, a time, 'earliest' or 'latest', not {place!r}")
        min_offset, max_offset = self._source.bounds(self.query, queue)
        return Target(min_offset, is_earliest=True) if place == "earliest" else Target(max_offset)

    def _reset(self, queue: TopicQueue, error: OffsetError) -> int:
        """Return the position at which *queue* continues after its offset turned out not to exist.

        Raise *error* if the program must decide.
        """
        where = self._options.out_of_range
        if where == "error":
            raise error
        offset = error.facts.get("min_offset" if where == "earliest" else "max_offset")
        return int(offset) if offset is not None else self._resolve(queue, where).offset

    def move(self, targets: Mapping[TopicQueue, Target]) -> None:
        """Move to those of *targets* that are in this store, and commit the positions with auto_commit."""
        for named, target in targets.items():
            queue = TopicQueue(*named)
            if self.has(named) and queue in self.buffer.cursors:
                cursor = self.buffer.cursors[queue]
                cursor.seek(target.offset)
                cursor.earliest = target.offset if target.is_earliest else None
                self.buffer.decided.pop(queue, None)
                if self.committer.is_automatic:
                    self.buffer.decided[queue] = target.offset
        self.record()

    def begin_again(self, offsets: Mapping[TopicQueue, int]) -> None:
        """Hand out again what begins at *offsets*, in the queues of this store that are read."""
        for queue, offset in self._own(offsets).items():
            if queue in self.buffer.cursors:
                self.buffer.cursors[queue].seek(offset)

    def lag(self) -> dict[TopicQueue, int]:
        """Return the number of visible messages that are not handed out yet, by queue."""
        self.buffer.follow()
        lags = {}
        for queue, cursor in self.buffer.cursors.items():
            bounds = self.query.queue(*queue)
            position = bounds["min_offset"] if isinstance(cursor.position, str) else cursor.position
            lags[cursor.named] = max(0, bounds["max_offset"] - max(position, bounds["min_offset"]))
        return lags

    # ── committing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _own(self, offsets: Mapping[TopicQueue, int]) -> dict[TopicQueue, int]:
        return {TopicQueue(*queue): offset for queue, offset in offsets.items() if self.has(queue)}

    def commit(self, offsets: Mapping[TopicQueue, int] | None) -> None:
        """Commit those of *offsets* that are in this store, or else the positions: all or none. Durable on return."""
        own = None if offsets is None else self._own(offsets)
        self.committer.commit(self.buffer.cursors, own)
        for queue, cursor in self.buffer.cursors.items():  # a commit of the program replaces earlier decisions
            if own is None or queue in own:
                self.buffer.decided.pop(queue, None)
                if own is not None:
                    cursor.release_held(below=own[queue])

    def commit_async(self, offsets: Mapping[TopicQueue, int] | None) -> Future[None]:
        """Start a `commit`; decisions stay."""
        return self.committer.commit_async(self.buffer.cursors, None if offsets is None else self._own(offsets))

    def commit_if_possible(self) -> None:
        """Commit automatically, now."""
        self.committer.commit_if_possible(self.buffer.cursors)

    def _first_unfinished(self) -> Mapping[TopicQueue, int]:
        return self._own(self._program.first_unfinished())

    def _lose(self, cursors: Cursors, *, is_gone: bool) -> None:
        self._program.lose(
            self._named(cursors), is_gone=is_gone, commit=lambda: self.committer.commit_if_possible(cursors)
        )

    def close(self, *, commit: bool) -> None:
        """Leave the group; with auto_commit, first commit all handed-out messages, unless *commit* is False."""
        try:
            if commit:
                self.commit_if_possible()
        finally:
            self.committer.close()
            self.buffer.close()
            self.query.close()
