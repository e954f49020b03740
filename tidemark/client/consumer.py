"""Consumer: reads topics, each queue in its order, alone or as a member of a group that shares the queues."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from tidemark.client.assigned import AllQueues, Assigned, NamedQueues
from tidemark.client.committer import Committer
from tidemark.client.cursor import Cursors
from tidemark.client.keywords import suggests_keywords
from tidemark.client.membership import Membership
from tidemark.client.program_traces import tell_received
from tidemark.client.pull_source import PullSource
from tidemark.client.query import Query
from tidemark.client.reading import OutOfRange, Reading
from tidemark.client.received import JSON, PulledPage, ReceivedMessage, TopicQueue, pulled_page
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.client.handling import Handler, Handling, OnError

Place = int | Literal["earliest", "latest"] | datetime
Where = Mapping[str, str] | Callable[[ReceivedMessage], bool]
Offsets = Mapping[tuple[str, int], int]
_GLANCE_S = 0.2  # how soon `consume` notices that it is to stop


class Consumer:
    """Reads from one query service. For one thread: several threads take several consumers, of one group.

    topics                 one or several
    group                  share the topics' queues with the other members of this group, and keep offsets in its name
    queues                 instead of topics: (topic, queue id) pairs; then a group only keeps offsets
    url                    default TIDEMARK_QUERY_URL, else http://127.0.0.1:8080
    store                  directory of a store on this host: messages come straight from its files, and only groups
                           and topics from the service; with `queues` and without a group it needs no service
    start                  where a queue begins of which the group has no offset: earliest, latest, an offset, a time
    tag                    one or several: messages of others are left out by the service
    where                  property values that a message must have, or a function that tells whether it is wanted
    auto_commit            commit, every *auto_commit_interval_s* and at the end, what was handed out before the last
                           `poll`: a message is on record only once the next one was asked for
    out_of_range           where to go on when an offset does not exist (any more): earliest, latest; error: raise
    on_assigned            called within `poll` with this consumer and queues that have come: the place to `seek`
    on_revoked             the same with queues that go to another member: there is still time to commit. Not called for
                           queues that have gone already, when this member was out
    session_timeout_s      a member that the service did not hear of for so long is out
    max_poll_interval_s    so is one that did not call `poll`
    timeout_s              for each wait on the network
    credentials            whom to trust, and what to show: see `Credentials`. Default: as the environment says

    The service may be away for a minute before `poll` raises UnavailableError, unless it never answered.
    """

    @suggests_keywords
    def __init__(
        self,
        topics: str | Iterable[str] = (),
        *,
        group: str | None = None,
        queues: Iterable[tuple[str, int]] = (),
        url: str | None = None,
        store: str | Path | None = None,
        start: Place = "earliest",
        tag: str | Sequence[str] | None = None,
        where: Where | None = None,
        auto_commit: bool = True,
        auto_commit_interval_s: float = 5.0,
        out_of_range: OutOfRange = "error",
        on_assigned: Callable[[Consumer, frozenset[TopicQueue]], None] | None = None,
        on_revoked: Callable[[Consumer, frozenset[TopicQueue]], None] | None = None,
        max_messages: int = 500,
        max_bytes: int | None = None,
        strategy: Literal["averagely", "consistent_hash"] = "averagely",
        session_timeout_s: float | None = None,
        max_poll_interval_s: float = 300.0,
        timeout_s: float = 60.0,
        credentials: Credentials | None = None,
    ) -> None:
        self._credentials = credentials
        self._group = group
        self._query = Query(url, timeout_s=timeout_s, credentials=credentials)
        self._start = start
        self._where = where
        self._wanted = _predicate(where)
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._max_messages = max_messages
        self._handling: Handling | None = None
        self._is_closed = False

        def membership(group: str, topics: list[str]) -> Membership:
            return Membership(
                self._query,
                group,
                topics,
                strategy=strategy,
                session_timeout_ms=None if session_timeout_s is None else int(session_timeout_s * 1000),
                max_poll_interval_s=max_poll_interval_s,
                on_change=self._wake,
            )

        source = PullSource(self._query.url, store, tag, max_messages, max_bytes, timeout_s, credentials)
        self._assigned = _assigned(self._query, topics, queues, group, membership)
        self._committer = Committer(
            self._assigned,
            interval_s=auto_commit_interval_s if auto_commit and group is not None else None,
            first_unfinished=self._first_unfinished,
        )
        self._reading = Reading(
            self._assigned,
            make_pulls=source.open,
            begin=lambda queue: self._resolve(queue, self._start),
            out_of_range=out_of_range,
            on_lost=self._lose,
            on_new=self._welcome,
        )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def poll(self, timeout_s: float = 1.0, *, max_messages: int | None = None) -> list[ReceivedMessage]:
        """The next messages, at most *max_messages*. Waits up to *timeout_s* for the first; [] when none came.

        To call it again says that the messages before have been dealt with. Who was fenced joins again by itself: what
        was handed out and not committed then comes once more, to whoever has the queue.

        raises OffsetTooSmallError, OffsetOutOfRangeError unless `out_of_range` says where to go on; UnavailableError;
        TopicNotFoundError and what else the service refuses
        """
        began = time.monotonic()
        taken = self._take(timeout_s, max_messages)
        tell_received(taken, self._group, waited_s=time.monotonic() - began)
        return taken

    def _take(self, timeout_s: float, max_messages: int | None) -> list[ReceivedMessage]:
        most = self._max_messages if max_messages is None else max_messages
        deadline = time.monotonic() + timeout_s
        self._before_poll()
        while True:
            taken = self._reading.take(most, self._wanted)
            self._reading.pull(JSON)
            left_s = deadline - time.monotonic()
            if taken or left_s <= 0:
                return taken
            for fetched in self._reading.wait(left_s):
                self._reading.add(fetched)

    def poll_table(self, timeout_s: float = 1.0) -> pa.Table | None:
        """As `poll`, a table: columns topic, queue_id, and those of `Query.pull_table`. None when nothing came.

        Far faster: no message becomes a Python object. `.to_pandas()` and `polars.from_arrow` go on from there. It
        knows no `where`: filter the table.
        """
        if self._where is not None:
            raise ValueError("poll_table knows no `where`: filter the table")
        from tidemark.client.table_pages import ARROW, TablePage, join_pages

        deadline = time.monotonic() + timeout_s
        self._before_poll()
        pages: list[TablePage] = []
        while True:
            self._reading.pull(ARROW)
            left_s = deadline - time.monotonic()
            if pages or left_s <= 0:
                return join_pages(pages)
            for fetched in self._reading.wait(left_s):
                page = self._reading.answer(fetched, lambda fetched: fetched.table())
                if page is not None:
                    self._reading.cursor(page.queue).seek(page.next_offset)
                    pages += [page] if page.table.num_rows else []

    def pull(self, topic: str, queue_id: int, offset: int | str, **parameters: Any) -> PulledPage:
        """One page of any queue from any offset; this consumer's own reading does not change. See `Query.pull`."""
        return pulled_page(TopicQueue(topic, queue_id), self._query.pull(topic, queue_id, offset, **parameters))

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """Messages one by one, for ever."""
        while True:
            yield from self.poll(max_messages=1)

    def _before_poll(self) -> None:
        if self._is_closed:
            raise ValueError("this consumer is closed")
        self._committer.commit_if_due(self._reading.cursors)
        self._reading.follow()

    def consume(
        self,
        handler: Handler,
        *,
        workers: int = 8,
        ordered: bool = False,
        max_attempts: int = 16,
        first_delay_level: int = 3,
        writer: str | None = None,
        on_error: OnError | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Call *handler* with each message, in *workers* threads, until *stop* is set. For a group, and no `poll`
        before.

        A message is on record once its handler has returned. One whose handler raised comes again, 10 s later, then
        30 s, 1 min and so on up to 2 h, by way of the topic %RETRY%group; after *max_attempts* it is laid aside in
        %DLQ%group. Others do not wait for it.

        ordered            of each queue one message at a time; a failed one is tried again at once: its queue waits
        first_delay_level  RocketMQ's level of the first pause: 1 s, 5 s, 10 s, 30 s, 1 min, ...
        writer             address of the writer that takes failed messages; default TIDEMARK_WRITER_ADDRESS
        on_error           told of each failure, in the worker's thread; default: a warning of the logger
                           tidemark.client.handling
        """
        from tidemark.client.handling import Handling
        from tidemark.client.producer import Producer
        from tidemark.client.send_back import SendBack
        from tidemark.format.topic_name import RETRY_PREFIX

        if not isinstance(self._assigned, Membership):
            raise ValueError("consume needs a group that shares the queues of topics")
        if not ordered:
            self._assigned.add_topic(f"{RETRY_PREFIX}{self._assigned.group}")
        stop = stop or threading.Event()
        with Producer(writer, credentials=self._credentials) as producer:
            send_back = SendBack(
                producer, self._assigned.group, max_attempts=max_attempts, first_delay_level=first_delay_level
            )
            self._handling = Handling(
                handler,
                send_back,
                group=self._group,
                workers=workers,
                ordered=ordered,
                max_attempts=max_attempts,
                on_error=on_error,
                stop=stop,
            )
            try:
                while not stop.is_set():
                    room = self._handling.room(_GLANCE_S)
                    self._handling.begin(self._take(_GLANCE_S if room else 0, room))
            finally:
                self._handling.close()
                self._committer.commit_if_possible(self._reading.cursors)

    # ── where ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def assignment(self) -> frozenset[TopicQueue]:
        """The queues it reads now; none before the first `poll`."""
        return frozenset(self._reading.cursors)

    def position(self, queue: tuple[str, int]) -> int | None:
        """The queue offset of the next message to hand out; None as long as the service has not told which that is."""
        position = self._reading.cursor(queue).position
        return position if isinstance(position, int) else None

    def seek(self, queue: tuple[str, int], place: Place) -> None:
        """Go on at *place* in one of its queues: an offset, earliest, latest, or the first message of a time on."""
        cursor = self._reading.cursor(queue)
        cursor.seek(self._resolve(cursor.queue, place))

    def seek_all(self, place: Place) -> None:
        """The same in every queue it reads."""
        self._reading.follow()
        for queue in self.assignment:
            self.seek(queue, place)

    def pause(self, *queues: tuple[str, int]) -> None:
        """Hand out nothing of these until `resume`."""
        for queue in queues:
            self._reading.pause(TopicQueue(*queue))

    def resume(self, *queues: tuple[str, int]) -> None:
        """Hand out messages of these again."""
        for queue in queues:
            self._reading.cursor(queue).is_paused = False

    def lag(self) -> dict[TopicQueue, int]:
        """How many visible messages lie ahead of its position, by queue."""
        self._reading.follow()
        lags = {}
        for queue, cursor in self._reading.cursors.items():
            bounds = self._query.queue(*queue)
            position = bounds["min_offset"] if isinstance(cursor.position, str) else cursor.position
            lags[queue] = max(0, bounds["max_offset"] - max(position, bounds["min_offset"]))
        return lags

    def _resolve(self, queue: TopicQueue, place: Place) -> int | str:
        if isinstance(place, datetime):
            return int(self._query.offset_at(*queue, int(place.timestamp() * 1000))["offset"])
        if place == "latest":  # of now, not of whenever the first pull happens to be
            return int(self._query.queue(*queue)["max_offset"])
        return place

    # ── committing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def commit(self, offsets: Offsets | None = None) -> None:
        """Put offsets on record, all or none: *offsets*, else those behind everything handed out. Durable on return.

        raises GenerationStaleError when a queue among them has become another member's: what was handed out of it is
        read again there; ValueError without a group
        """
        self._committer.commit(self._reading.cursors, _named(offsets))

    def commit_async(self, offsets: Offsets | None = None) -> Future[None]:
        """As `commit` of this moment, without waiting for it."""
        return self._committer.commit_async(self._reading.cursors, _named(offsets))

    def _lose(self, cursors: Cursors, *, is_gone: bool) -> None:
        """Queues go to another member; *is_gone*: they have gone already, nothing of them can be committed."""
        queues = frozenset(cursors)
        if not is_gone:
            if self._handling is not None:
                self._handling.drain(queues)
            if self._on_revoked is not None:
                self._on_revoked(self, queues)
            self._committer.commit_if_possible(cursors)
        if self._handling is not None:
            self._handling.forget(queues)

    def _welcome(self, queues: frozenset[TopicQueue]) -> None:
        if self._on_assigned is not None:
            self._on_assigned(self, queues)

    def _wake(self) -> None:
        self._reading.wake()

    def _first_unfinished(self) -> Mapping[TopicQueue, int]:
        return {} if self._handling is None else self._handling.first_unfinished()

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, *, commit: bool = True) -> None:
        """Leave the group. With auto_commit, all that was handed out is put on record before, unless *commit* is
        False."""
        if self._is_closed:
            return
        self._is_closed = True
        if commit:
            self._committer.commit_if_possible(self._reading.cursors)
        self._committer.close()
        self._reading.close()
        self._query.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """What was handed out last counts as dealt with only when no exception came of it."""
        self.close(commit=kind is None)


def _assigned(
    query: Query,
    topics: str | Iterable[str],
    queues: Iterable[tuple[str, int]],
    group: str | None,
    membership: Callable[[str, list[str]], Membership],
) -> Assigned:
    names = [topics] if isinstance(topics, str) else list(topics)
    named = [TopicQueue(*queue) for queue in queues]
    if bool(names) == bool(named):
        raise ValueError("a consumer reads topics or queues: one of the two")
    if named:
        return NamedQueues(query, named, group)
    return AllQueues(query, names) if group is None else membership(group, names)


def _predicate(where: Where | None) -> Callable[[ReceivedMessage], bool]:
    if where is None:
        return lambda _: True
    if callable(where):
        return where
    wanted = where.items()
    return lambda message: wanted <= message.properties.items()


def _named(offsets: Offsets | None) -> dict[TopicQueue, int] | None:
    return None if offsets is None else {TopicQueue(*queue): offset for queue, offset in offsets.items()}
