"""Consumer: reads topics, each queue in order, alone or as a member of a group that shares the queues."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, Unpack

from tidemark.client.answers import RecordsParameters
from tidemark.client.consumer.group_member import GroupMember
from tidemark.client.consumer.handout import Handout
from tidemark.client.consumer.offset_committer import OffsetCommitter
from tidemark.client.consumer.open_page_source import DEFAULT_LIMITS, PullSource
from tidemark.client.consumer.page_buffer import OutOfRange, PageBuffer
from tidemark.client.consumer.queue_assignment import AllQueues, NamedQueues, QueueAssignment
from tidemark.client.consumer.queue_cursor import Cursors, IsWanted
from tidemark.client.consumer.start_offsets import Place, StartOffsets
from tidemark.client.own_process import OwnProcess
from tidemark.client.received_message import JSON, PulledPage, ReceivedMessage, TopicQueue, pulled_page
from tidemark.client.rest.page import ARROW
from tidemark.client.rest.query import Query
from tidemark.client.tracing.spans import record_received
from tidemark.client.unknown_keywords import suggests_keywords
from tidemark.client.values import Deserializer, deserializer_of
from tidemark.client.wire.wire import Wire, checked_wire, default_wire
from tidemark.errors import OffsetError
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.client.consumer.handler_pool import Handler, Handling, OnError
    from tidemark.client.rest.arrow_page import TablePage

Where = Mapping[str, str] | Callable[[ReceivedMessage], bool]
Offsets = Mapping[tuple[str, int], int]
_FAILED_PAUSE_S = 0.1  # lets other queues' pages arrive before an exception of `where` is raised
_GLANCE_S = 0.2  # longest time until `consume` notices that `stop` is set


class _Target(NamedTuple):
    """An offset to seek to. is_earliest: it was the offset of the queue's first message."""

    offset: int
    is_earliest: bool = False


class TakenTable(NamedTuple):
    """The pages of one `poll_table`, until the program receives them."""

    pages: list[TablePage]
    handout: Handout

    def give_back(self) -> None:
        """Restore the positions."""
        self.handout.give_back()


class Consumer:
    """Reads from one query service. Use it from one thread; use several consumers of one group for several threads.

    topics                 one topic or several
    group                  group whose members share the topics' queues, and under whose name offsets are committed
    queues                 alternative to topics: (topic, queue id) pairs; a group then only stores offsets
    url                    URL of the query service; default: TIDEMARK_QUERY_URL, then http://127.0.0.1:8080
    store                  directory of a store on this host: the consumer reads messages directly from its files, and
                           uses the service only for groups and topics; with `queues` and without a group it needs no
                           service
    start                  position in a queue for which the group has no offset: earliest, latest, an offset or a time.
                           A queue that is younger than this consumer starts at its earliest message. With a group, the
                           resolved position is committed at once
    tag                    one tag or several: the service leaves out messages with other tags
    where                  property values that a message must have, or a function that returns True to keep a message.
                           If the function raises, `poll` returns the messages before that one, and the next `poll`
                           raises the exception. If it raises on the same message again, the messages after it are
                           handed out, and each `poll` that would return none raises again. Nothing from that message
                           on is committed until the function returns, or the program seeks or commits past it
    model                  class of pydantic models: `message.value` is the body, JSON, as an instance of it
    value_deserializer     alternative to model: a function of the body that returns `message.value`
    auto_commit            commit, every *auto_commit_interval_s* and at the end, the messages that were handed out
                           before the last `poll`; commit the position of a `seek` at once
    out_of_range           position if an offset does not exist: earliest or latest; error: raise. With a group, the new
                           position is committed at once
    on_assigned            called within `poll` with this consumer and its new queues: the place to `seek`. If it
                           raises, so does `poll`, and the next `poll` calls it again before it hands out anything
    on_revoked             called once with the queues that move to another member, while they can still be committed.
                           If it raises, so does `poll`, and the queues are released. Not called for queues that already
                           belong to another member
    max_messages           limit of a pull, and default of `poll`: 500; for tables 8,192
    max_bytes              limit of a pull, in bytes of stored records: 1 MiB; for tables 4 MiB. The first message is
                           returned whatever its size
    session_timeout_s      the group removes a member from which the service got no request for this long
    max_poll_interval_s    the group removes a member that did not call `poll` for this long
    timeout_s              limit for each wait on the network
    credentials            trusted CA, client certificate and token: see `Credentials`. Default: from the environment
    wire                   remoting: `poll` gets records in frames over TCP if the service offers that, which is faster;
                           otherwise, and with grpc, by HTTP. Default: TIDEMARK_CLIENT_WIRE, then remoting

    `poll` raises UnavailableError if the service does not answer for a minute, or at once if it has never answered.
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
        model: type[Any] | None = None,
        value_deserializer: Deserializer | None = None,
        auto_commit: bool = True,
        auto_commit_interval_s: float = 5.0,
        out_of_range: OutOfRange = "error",
        on_assigned: Callable[[Consumer, frozenset[TopicQueue]], None] | None = None,
        on_revoked: Callable[[Consumer, frozenset[TopicQueue]], None] | None = None,
        max_messages: int | None = None,
        max_bytes: int | None = None,
        strategy: Literal["averagely", "consistent_hash"] = "averagely",
        session_timeout_s: float | None = None,
        max_poll_interval_s: float = 300.0,
        timeout_s: float = 60.0,
        credentials: Credentials | None = None,
        wire: Wire | None = None,
    ) -> None:
        self._credentials = credentials
        self._group = group
        self._query = Query(url, timeout_s=timeout_s, credentials=credentials)
        self._where = where
        self._on_assigned, self._on_revoked = on_assigned, on_revoked
        self._max_messages = DEFAULT_LIMITS.max_messages if max_messages is None else max_messages
        self._handling: Handling | None = None
        self._is_closed = False
        self._process = OwnProcess("Consumer")

        def membership(group: str, topics: list[str]) -> GroupMember:
            return GroupMember(
                self._query,
                group,
                topics,
                strategy=strategy,
                session_timeout_ms=None if session_timeout_s is None else int(session_timeout_s * 1000),
                max_poll_interval_s=max_poll_interval_s,
                on_change=self._wake,
            )

        names, named = _named_once(topics, queues)
        own_topics = frozenset({*names, *(queue.topic for queue in named)})
        self._deserializer = deserializer_of(model, value_deserializer)
        self._wanted = _predicate(where, own_topics, self._deserializer)
        source = self._source = PullSource(
            self._query.url,
            store,
            tag,
            max_messages,
            max_bytes,
            timeout_s,
            credentials,
            own_topics,
            default_wire() if wire is None else checked_wire(wire),
        )
        self._assigned = _assigned(self._query, names, named, group, membership)
        self._committer = OffsetCommitter(
            self._assigned,
            interval_s=auto_commit_interval_s,
            is_automatic=auto_commit and group is not None,
            first_unfinished=self._first_unfinished,
        )
        self._out_of_range = out_of_range
        self._reading = PageBuffer(
            self._assigned,
            make_pulls=source.open,
            starts=StartOffsets(
                self._query,
                start,
                group=group,
                topics=own_topics,
                named=named,
                end_of=source.stored_end if store is not None else None,
            ),
            reset=self._reset,
            on_lost=self._lose,
            on_new=self._welcome,
        )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def poll(self, timeout_s: float = 1.0, *, max_messages: int | None = None) -> list[ReceivedMessage]:
        """Return the next messages, at most *max_messages*. Wait up to *timeout_s* for the first; return [] for none.

        With max_messages=0, only update the assignment of queues, and hand out nothing.

        The next call confirms that the program has processed these messages. A fenced consumer joins the group again:
        messages that were handed out and not committed are then delivered again, to the member that has their queue.
        An exception, KeyboardInterrupt included, never moves a position.

        raises OffsetTooSmallError, OffsetOutOfRangeError unless `out_of_range` is set; UnavailableError;
        TopicNotFoundError if none of the topics exists; any exception of `where` or of a callback; other refusals
        """
        began = time.monotonic()
        return self._received(self._take(timeout_s, max_messages), began=began)

    def _received(self, handout: Handout, *, began: float) -> list[ReceivedMessage]:
        """Return the messages to the program, and move the positions past them."""
        try:
            record_received(handout.messages, self._group, waited_s=time.monotonic() - began)
            return handout.settle()
        except BaseException:
            handout.give_back()
            raise

    def _take(
        self, timeout_s: float, max_messages: int | None, *, is_abandoned: Callable[[], bool] = lambda: False
    ) -> Handout:
        """Take messages without moving a position. is_abandoned: returns True once the caller no longer wants them."""
        most = self._max_messages if max_messages is None else max_messages
        if most < 0:
            raise ValueError(f"max_messages is {most}; it must be at least 0")
        deadline = time.monotonic() + timeout_s
        self._before_poll()
        while not is_abandoned():
            handout, failed = self._try_to_take(most)
            try:
                self._reading.pull(JSON)
                left_s = deadline - time.monotonic()
                if handout.messages or (left_s <= 0 and failed is None):
                    return handout
            except BaseException:
                handout.give_back()
                raise
            handout.settle()  # move past unwanted messages
            self._fetch(left_s if failed is None else min(left_s, _FAILED_PAUSE_S))
            if failed is not None:
                raise failed
        return Handout()

    def _try_to_take(self, most: int) -> tuple[Handout, Exception | None]:
        """Take messages; return an exception of `where`, so that the caller can fetch other queues before raising."""
        try:
            return self._reading.take(most, self._wanted), None
        except Exception as error:
            return Handout(), error

    def _fetch(self, timeout_s: float) -> None:
        for fetched in self._reading.wait(timeout_s):
            self._reading.add(fetched)
        self._record()

    def poll_table(self, timeout_s: float = 1.0) -> pa.Table | None:
        """Poll a table: columns topic, queue_id, and those of `Query.pull_table`. None if no messages arrived.

        Much faster than `poll`, because no message becomes a Python object. Convert the table with `.to_pandas()` or
        `polars.from_arrow`. `where` is not supported: filter the table.
        """
        return self._received_table(self._take_table(timeout_s))

    @staticmethod
    def _received_table(taken: TakenTable) -> pa.Table | None:
        """Return the pages to the program as one table, and move the positions past it."""
        from tidemark.client.rest.arrow_page import join_pages

        try:
            invalid = taken.handout.settle_queues()
            return join_pages([page for page in taken.pages if page.queue not in invalid])
        except BaseException:
            taken.give_back()
            raise

    def _take_table(self, timeout_s: float, *, is_abandoned: Callable[[], bool] = lambda: False) -> TakenTable:
        """Take pages without moving a position. After the first page, leave an exception to the next call."""
        if self._where is not None:
            raise ValueError("poll_table does not support `where`: filter the table")
        deadline = time.monotonic() + timeout_s
        self._before_poll()
        taken = TakenTable([], Handout())
        try:
            while not is_abandoned():
                self._reading.pull(ARROW)
                left_s = deadline - time.monotonic()
                if taken.pages or left_s <= 0:
                    break
                self._take_pages(taken, left_s)
                self._record()
        except Exception:
            if not taken.pages:
                taken.handout.give_back()
                raise
        except BaseException:
            taken.handout.give_back()
            raise
        return taken

    def _take_pages(self, taken: TakenTable, timeout_s: float) -> None:
        for fetched in self._reading.wait(timeout_s):
            page = self._reading.answer(fetched, lambda fetched: fetched.table())
            if page is not None:
                cursor = self._reading.cursor(page.queue)
                taken.handout.lend_of(cursor)
                cursor.pass_to(page.next_offset)
                if page.table.num_rows:
                    taken.pages.append(page)

    def pull(self, topic: str, queue_id: int, offset: int | str, **parameters: Unpack[RecordsParameters]) -> PulledPage:
        """Return one page of any queue from any offset; the consumer's positions do not change. See `Query.pull`."""
        answer = self._query.pull(topic, queue_id, offset, body_encoding="base64", **parameters)
        page = pulled_page(TopicQueue(topic, queue_id), answer)
        if self._deserializer is not None:
            for message in page.messages:
                message.read_by(self._deserializer)
        return page

    def __iter__(self) -> Iterator[ReceivedMessage]:
        """Yield messages one by one, without end. A loop that breaks leaves the next message to the next `poll`."""
        while True:
            yield from self.poll(max_messages=1)

    def _before_poll(self) -> None:
        self._process.require()
        if self._is_closed:
            raise ValueError("this consumer is closed")
        self._committer.commit_if_due(self._reading.cursors)
        self._reading.follow()
        self._record()

    def _record(self) -> None:
        """Commit resolved starts, resets and seeks, so that a restart begins at the same position."""
        if self._reading.decided:
            if self._group is None:
                self._reading.decided.clear()
            else:
                self._committer.record(self._reading.cursors, self._reading.decided)

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
        """Call *handler* with each message, in *workers* threads, until *stop* is set. Needs a group, and no `poll`
        before.

        A message is committed once its handler has returned, whatever `auto_commit` is. A message whose handler raised
        is delivered again through the topic %RETRY%group: after 10 s, then 30 s, 1 min and so on up to 2 h; after
        *max_attempts* it is stored in %DLQ%group. Other messages do not wait for it. Only members that subscribe to
        the message's original topic receive a retry. If the writer permanently refuses a failed message, it is stored
        in %DLQ%group with the reason; if that is refused, too, the message is skipped with an error in the log.

        ordered            handle one message per queue at a time; a failed message is retried at once, and its queue
                           waits
        first_delay_level  RocketMQ's delay level of the first pause: 1 s, 5 s, 10 s, 30 s, 1 min, ...
        writer             address of the writer that stores failed messages; default TIDEMARK_WRITER_ADDRESS
        on_error           called with each failure, in the worker's thread; default: log a warning with the logger
                           tidemark.client.consumer.handler_pool
        """
        from tidemark.client.consumer.handler_pool import Handling
        from tidemark.client.consumer.retry_later import RetryLater
        from tidemark.client.producer.producer import Producer
        from tidemark.format.topic_name import MAX_GROUP_LENGTH

        self._process.require()
        if not isinstance(self._assigned, GroupMember):
            raise ValueError("consume needs a group that shares the queues of topics: give topics and group")
        if len(self._assigned.group) > MAX_GROUP_LENGTH:
            raise ValueError(
                f"the group's name has {len(self._assigned.group)} characters; `consume` derives topic names from it, "
                f"so it may have at most {MAX_GROUP_LENGTH}"
            )
        own = frozenset(self._assigned.topics)
        if not ordered:
            self._assigned.add_retry_topics()
        stop = stop or threading.Event()
        with Producer(writer, credentials=self._credentials) as producer, self._committer.always_automatic():
            send_back = RetryLater(
                producer, self._assigned.group, max_attempts=max_attempts, first_delay_level=first_delay_level
            )
            self._handling = Handling(
                handler,
                send_back,
                group=self._group,
                topics=own,
                workers=workers,
                ordered=ordered,
                max_attempts=max_attempts,
                on_error=on_error,
                stop=stop,
            )
            try:
                while not stop.is_set():
                    self._handle_more(self._handling)
            finally:
                self._end_handling(self._handling)

    def _handle_more(self, handling: Handling) -> None:
        room = handling.room(_GLANCE_S)
        handout = self._take(_GLANCE_S if room else 0, room)
        try:
            handling.begin(handout.messages)
            handout.settle()
        except BaseException:
            handout.give_back()
            raise

    def _end_handling(self, handling: Handling) -> None:
        """Commit the handled messages; the next `poll` returns the others again."""
        handling.close()
        self._committer.commit_if_possible(self._reading.cursors)
        for queue, offset in handling.first_unfinished().items():
            if queue in self._reading.cursors:
                self._reading.cursors[queue].seek(offset)
        self._handling = None

    # ── where ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def assignment(self) -> frozenset[TopicQueue]:
        """Return the queues that this consumer reads; none before the first `poll`."""
        return frozenset(self._reading.cursors)

    def position(self, queue: tuple[str, int]) -> int | None:
        """Return the queue offset of the next message to hand out; None until the service has resolved it."""
        position = self._reading.cursor(queue).position
        return position if isinstance(position, int) else None

    def seek(self, queue: tuple[str, int], place: Place) -> None:
        """Continue at *place* in one of its queues: an offset, earliest, latest, or the first message since a time.

        With auto_commit the position is committed at once, otherwise with the program's next `commit`.
        """
        self._move(self._targets([queue], place))

    def seek_all(self, place: Place) -> None:
        """Continue at *place*, as for `seek`, in every queue that this consumer reads."""
        self._process.require()
        self._reading.follow()
        self._move(self._targets(self.assignment, place))

    def _targets(self, queues: Iterable[tuple[str, int]], place: Place) -> dict[TopicQueue, _Target]:
        """Resolve *place* in each of *queues*. Raise KeyError for a queue that this consumer does not read."""
        self._process.require()
        return {(found := self._reading.cursor(queue).queue): self._resolve(found, place) for queue in queues}

    def _move(self, offsets: Mapping[TopicQueue, _Target]) -> None:
        """Move all the positions, and commit them with auto_commit."""
        for queue, target in offsets.items():
            if queue in self._reading.cursors:
                cursor = self._reading.cursors[queue]
                cursor.seek(target.offset)
                cursor.earliest = target.offset if target.is_earliest else None
                self._reading.decided.pop(queue, None)
                if self._committer.is_automatic:
                    self._reading.decided[queue] = target.offset
        self._record()

    def pause(self, *queues: tuple[str, int]) -> None:
        """Hand out no messages of *queues* until `resume`."""
        for queue in queues:
            self._reading.pause(TopicQueue(*queue))

    def resume(self, *queues: tuple[str, int]) -> None:
        """Hand out messages of *queues* again."""
        for queue in queues:
            self._reading.cursor(queue).is_paused = False

    def lag(self) -> dict[TopicQueue, int]:
        """Return the number of visible messages that are not handed out yet, by queue."""
        self._process.require()
        self._reading.follow()
        lags = {}
        for queue, cursor in self._reading.cursors.items():
            bounds = self._query.queue(*queue)
            position = bounds["min_offset"] if isinstance(cursor.position, str) else cursor.position
            lags[queue] = max(0, bounds["max_offset"] - max(position, bounds["min_offset"]))
        return lags

    def _resolve(self, queue: TopicQueue, place: Place) -> _Target:
        """Return the current offset of *place*."""
        if isinstance(place, datetime):
            return _Target(int(self._query.offset_at(*queue, int(place.timestamp() * 1000))["offset"]))
        if isinstance(place, int):
            return _Target(place)
        if place not in ("earliest", "latest"):
            raise ValueError(f"place must be an offset, a time, 'earliest' or 'latest', not {place!r}")
        min_offset, max_offset = self._source.bounds(self._query, queue)
        return _Target(min_offset, is_earliest=True) if place == "earliest" else _Target(max_offset)

    def _reset(self, queue: TopicQueue, error: OffsetError) -> int:
        """Return the position at which *queue* continues after its offset turned out not to exist.

        Raise *error* if the program must decide.
        """
        if self._out_of_range == "error":
            raise error
        offset = error.facts.get("min_offset" if self._out_of_range == "earliest" else "max_offset")
        return int(offset) if offset is not None else self._resolve(queue, self._out_of_range).offset

    # ── committing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit *offsets*, or else the positions after all handed-out messages: all or none. Durable on return.

        raises GenerationStaleError if a queue among them now belongs to another member: that member reads its
        uncommitted messages again; ValueError without a group
        """
        self._require_group()
        self._committer.commit(self._reading.cursors, _named(offsets))
        for queue, cursor in self._reading.cursors.items():  # a commit of the program replaces earlier decisions
            if offsets is None or queue in offsets:
                self._reading.decided.pop(queue, None)
                if offsets is not None:
                    cursor.release_held(below=offsets[queue])

    def commit_async(self, offsets: Offsets | None = None) -> Future[None]:
        """Start a commit of the current positions, and return a future of its end. ValueError without a group."""
        self._require_group()
        return self._committer.commit_async(self._reading.cursors, _named(offsets))

    def _require_group(self) -> None:
        self._process.require()
        if self._group is None:
            raise ValueError("a consumer without a group cannot commit: give group")

    def _lose(self, cursors: Cursors, *, is_gone: bool) -> None:
        """Finish *cursors*, whose queues move to another member.

        is_gone: they have moved already, so nothing of them can be committed.
        """
        queues = frozenset(cursors)
        try:
            if not is_gone:
                self._let_finish(cursors)
        finally:
            if self._handling is not None:
                self._handling.forget(queues)

    def _let_finish(self, cursors: Cursors) -> None:
        queues = frozenset(cursors)
        if self._handling is not None:
            self._handling.drain(queues)
        try:
            if self._on_revoked is not None:
                self._on_revoked(self, queues)
        finally:
            self._committer.commit_if_possible(cursors)

    def _welcome(self, queues: frozenset[TopicQueue]) -> None:
        if self._on_assigned is not None:
            self._on_assigned(self, queues)

    def _wake(self) -> None:
        self._reading.wake()

    def _first_unfinished(self) -> Mapping[TopicQueue, int]:
        return {} if self._handling is None else self._handling.first_unfinished()

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, *, commit: bool = True) -> None:
        """Leave the group.

        With auto_commit, first commit all handed-out messages, unless *commit* is False.
        """
        if self._is_closed or not self._process.is_this_one:  # in a fork the member belongs to the other process
            return
        self._is_closed = True
        try:
            if commit:
                self._committer.commit_if_possible(self._reading.cursors)
        finally:
            self._committer.close()
            self._reading.close()
            self._query.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the consumer. After an exception, the last messages handed out are not committed."""
        self.close(commit=kind is None)


def _named_once(topics: str | Iterable[str], queues: Iterable[tuple[str, int]]) -> tuple[list[str], list[TopicQueue]]:
    names = [topics] if isinstance(topics, str) else list(topics)
    named = [TopicQueue(*queue) for queue in queues]
    if bool(names) == bool(named):
        raise ValueError("give either topics or queues: exactly one of the two")
    return names, named


def _assigned(
    query: Query,
    names: list[str],
    named: list[TopicQueue],
    group: str | None,
    membership: Callable[[str, list[str]], GroupMember],
) -> QueueAssignment:
    if named:
        return NamedQueues(query, named, group)
    return AllQueues(query, names) if group is None else membership(group, names)


def _predicate(
    where: Where | None, topics: frozenset[str], deserializer: Deserializer | None = None
) -> IsWanted | None:
    """Return the function that decides whether a message is wanted; None if all are.

    Messages of topics that are not in *topics* are retries: they have passed the filter, or belong to other members.
    With a *deserializer*, the function first gives it to the message.
    """
    if deserializer is not None:
        chosen = _predicate(where, topics) or (lambda message: True)
        return lambda message: chosen(message.read_by(deserializer))
    if where is None:
        return None
    if callable(where):
        return lambda message: message.topic not in topics or where(message)
    wanted = where.items()
    return lambda message: message.topic not in topics or wanted <= message.properties.items()


def _named(offsets: Offsets | None) -> dict[TopicQueue, int] | None:
    return None if offsets is None else {TopicQueue(*queue): offset for queue, offset in offsets.items()}
