"""Consumer: reads topics, each queue in order, alone or as a member of a group that shares the queues."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, Unpack

from tidemark.client.answers import RecordsParameters
from tidemark.client.consumer.group_member import GroupMember
from tidemark.client.consumer.handout import Handout
from tidemark.client.consumer.open_page_source import DEFAULT_LIMITS
from tidemark.client.consumer.page_buffer import OutOfRange
from tidemark.client.consumer.program import Program
from tidemark.client.consumer.queue_cursor import IsWanted
from tidemark.client.consumer.start_offsets import Place
from tidemark.client.consumer.store_reading import ReadingOptions, StoreReading, Target
from tidemark.client.consumer.stores import Stores
from tidemark.client.errors.address_faults import stores_of
from tidemark.client.own_process import OwnProcess
from tidemark.client.received_message import JSON, PulledPage, ReceivedMessage, StoreQueue, TopicQueue, pulled_page
from tidemark.client.rest.page import ARROW
from tidemark.client.rest.query import default_url
from tidemark.client.tracing.spans import record_received
from tidemark.client.unknown_keywords import suggests_keywords
from tidemark.client.values import Deserializer, deserializer_of
from tidemark.client.wire.wire import Wire, checked_wire, default_wire
from tidemark.tls.credentials import Credentials

if TYPE_CHECKING:
    import pyarrow as pa

    from tidemark.client.consumer.handler_pool import Handler, Handling, OnError
    from tidemark.client.rest.arrow_page import TablePage

Where = Mapping[str, str] | Callable[[ReceivedMessage], bool]
Offsets = Mapping[tuple[str, int], int]
_FAILED_PAUSE_S = 0.1  # lets other queues' pages arrive before an exception of `where` is raised
_GLANCE_S = 0.2  # longest time until `consume` notices that `stop` is set


class TakenTable(NamedTuple):
    """The pages of one `poll_table`, until the program receives them."""

    pages: list[TablePage]
    handout: Handout

    def give_back(self) -> None:
        """Restore the positions."""
        self.handout.give_back()


class Consumer:
    """Reads from the query service of a store, or from those of several stores.

    Use it from one thread; use several consumers of one group for several threads.

    topics                 one topic or several
    group                  group whose members share the topics' queues, and under whose name offsets are committed
    queues                 alternative to topics: (topic, queue id) pairs; a group then only stores offsets
    url                    URL of the query service, or those of a group's members, separated by |. For topics that are
                           spread over several stores: the URLs of all of them, as a sequence or separated by commas.
                           Queues are then `StoreQueue`s, and a group has members and offsets in each store. A store
                           that does not answer does not stop the others: `poll` raises its error when it would return
                           nothing. Default: TIDEMARK_QUERY_URL, then http://127.0.0.1:8080
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
        url: str | Sequence[str] | None = None,
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
        self._where = where
        self._max_messages = DEFAULT_LIMITS.max_messages if max_messages is None else max_messages
        self._is_closed = False
        self._process = OwnProcess("Consumer")
        names, named = _named_once(topics, queues)
        options = ReadingOptions(
            names,
            named,
            group,
            folder=store,
            start=start,
            tag=tag if tag is None or isinstance(tag, str) else list(tag),
            auto_commit=auto_commit,
            auto_commit_interval_s=auto_commit_interval_s,
            out_of_range=out_of_range,
            max_messages=max_messages,
            max_bytes=max_bytes,
            strategy=strategy,
            session_timeout_s=session_timeout_s,
            max_poll_interval_s=max_poll_interval_s,
            timeout_s=timeout_s,
            credentials=credentials,
            wire=default_wire() if wire is None else checked_wire(wire),
        )
        self._own_topics = options.own_topics
        self._deserializer = deserializer_of(model, value_deserializer)
        self._wanted = _predicate(where, self._own_topics, self._deserializer)
        self._program = Program(
            None if on_assigned is None else partial(on_assigned, self),
            None if on_revoked is None else partial(on_revoked, self),
        )
        urls = stores_of(default_url() if url is None else url)
        _require_stores(urls, named, store)
        self._stores = Stores(
            [StoreReading(one, options, self._program, store=one if len(urls) > 1 else "") for one in urls],
            topics=names if group is None else (),
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
                self._stores.pull(JSON)
                left_s = deadline - time.monotonic()
                if handout.messages:
                    return handout
                if left_s <= 0 and failed is None:
                    self._stores.require_answers()
                    return handout
            except BaseException:
                handout.give_back()
                raise
            handout.settle()  # move past unwanted messages
            self._stores.fetch(left_s if failed is None else min(left_s, _FAILED_PAUSE_S))
            if failed is not None:
                raise failed
        return Handout()

    def _try_to_take(self, most: int) -> tuple[Handout, Exception | None]:
        """Take messages; return an exception of `where`, so that the caller can fetch other queues before raising."""
        try:
            return self._stores.take(most, self._wanted), None
        except Exception as error:
            return Handout(), error

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
                self._stores.pull(ARROW)
                left_s = deadline - time.monotonic()
                if taken.pages:
                    break
                if left_s <= 0:
                    self._stores.require_answers()
                    break
                self._stores.take_tables(taken.pages, taken.handout, left_s)
        except Exception:
            if not taken.pages:
                taken.handout.give_back()
                raise
        except BaseException:
            taken.handout.give_back()
            raise
        return taken

    def pull(self, topic: str, queue_id: int, offset: int | str, **parameters: Unpack[RecordsParameters]) -> PulledPage:
        """Return one page of any queue from any offset; the consumer's positions do not change. See `Query.pull`.

        Raises ValueError if there are several stores: use a `Query` of one of them.
        """
        if not self._stores.is_one:
            raise ValueError("pull: this consumer reads several stores; use Query(url of one of them).pull")
        (store,) = self._stores
        answer = store.query.pull(topic, queue_id, offset, body_encoding="base64", **parameters)
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
        self._stores.follow()

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
        writer             address of the writer that stores failed messages; of several stores those of each, in the
                           order of `url` and separated by commas. Default: TIDEMARK_WRITER_ADDRESS
        on_error           called with each failure, in the worker's thread; default: log a warning with the logger
                           tidemark.client.consumer.handler_pool
        """
        from tidemark.client.consumer.handler_pool import Handling
        from tidemark.client.consumer.retry_writers import RetryWriters

        self._process.require()
        group = self._require_shared_group()
        if not ordered:
            for member in self._members:
                member.add_retry_topics()
        stop = stop or threading.Event()
        with (
            RetryWriters([store.store for store in self._stores], writer, credentials=self._credentials) as writers,
            contextlib.ExitStack() as always_automatic,
        ):
            for store in self._stores:
                always_automatic.enter_context(store.committer.always_automatic())
            handling = self._program.handling = Handling(
                handler,
                writers.send_back(group, max_attempts=max_attempts, first_delay_level=first_delay_level),
                group=group,
                topics=self._own_topics,
                workers=workers,
                ordered=ordered,
                max_attempts=max_attempts,
                on_error=on_error,
                stop=stop,
            )
            try:
                while not stop.is_set():
                    self._handle_more(handling)
            finally:
                self._end_handling(handling)

    @property
    def _members(self) -> list[GroupMember]:
        """The memberships of a group that shares queues, one for each store; otherwise none."""
        return [store.assigned for store in self._stores if isinstance(store.assigned, GroupMember)]

    def _require_shared_group(self) -> str:
        """Return the group whose messages `consume` can handle. Raises ValueError."""
        from tidemark.format.topic_name import MAX_GROUP_LENGTH

        if self._group is None or not self._members:
            raise ValueError("consume needs a group that shares the queues of topics: give topics and group")
        if len(self._group) > MAX_GROUP_LENGTH:
            raise ValueError(
                f"the group's name has {len(self._group)} characters; `consume` derives topic names from it, so it "
                f"may have at most {MAX_GROUP_LENGTH}"
            )
        return self._group

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
        unfinished = handling.first_unfinished()
        for store in self._stores:
            store.commit_if_possible()
            store.begin_again(unfinished)
        self._program.handling = None

    # ── where ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def assignment(self) -> frozenset[TopicQueue]:
        """Return the queues that this consumer reads; none before the first `poll`."""
        return self._stores.queues

    def position(self, queue: tuple[str, int]) -> int | None:
        """Return the queue offset of the next message to hand out; None until the service has resolved it."""
        position = self._stores.of(queue).buffer.cursor(queue).position
        return position if isinstance(position, int) else None

    def seek(self, queue: tuple[str, int], place: Place) -> None:
        """Continue at *place* in one of its queues: an offset, earliest, latest, or the first message since a time.

        With auto_commit the position is committed at once, otherwise with the program's next `commit`.
        """
        self._move(self._targets([queue], place))

    def seek_all(self, place: Place) -> None:
        """Continue at *place*, as for `seek`, in every queue that this consumer reads."""
        self._process.require()
        for store in self._stores:
            store.buffer.follow()
        self._move(self._targets(self.assignment, place))

    def _targets(self, queues: Iterable[tuple[str, int]], place: Place) -> dict[TopicQueue, Target]:
        """Resolve *place* in each of *queues*. Raise KeyError for a queue that this consumer does not read."""
        self._process.require()
        return {_named_queue(queue): self._stores.of(queue).resolve(queue, place) for queue in queues}

    def _move(self, targets: Mapping[TopicQueue, Target]) -> None:
        """Move all the positions, and commit them with auto_commit."""
        for store in self._stores:
            store.move(targets)

    def pause(self, *queues: tuple[str, int]) -> None:
        """Hand out no messages of *queues* until `resume`."""
        for queue in queues:
            self._stores.of(queue).buffer.pause(TopicQueue(*queue))

    def resume(self, *queues: tuple[str, int]) -> None:
        """Hand out messages of *queues* again."""
        for queue in queues:
            self._stores.of(queue).buffer.cursor(queue).is_paused = False

    def lag(self) -> dict[TopicQueue, int]:
        """Return the number of visible messages that are not handed out yet, by queue."""
        self._process.require()
        return {queue: lag for store in self._stores for queue, lag in store.lag().items()}

    # ── committing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit *offsets*, or else the positions after all handed-out messages: all or none. Durable on return.

        With several stores, all or none of each: after an error, the offsets of some stores may be committed.

        raises GenerationStaleError if a queue among them now belongs to another member: that member reads its
        uncommitted messages again; ValueError without a group
        """
        self._require_group()
        named = self._named(offsets)
        for store in self._stores:
            store.commit(named)

    def commit_async(self, offsets: Offsets | None = None) -> Future[None]:
        """Start a commit of the current positions, and return a future of its end. ValueError without a group."""
        self._require_group()
        named = self._named(offsets)
        return _end_of_all([store.commit_async(named) for store in self._stores])

    def _named(self, offsets: Offsets | None) -> dict[TopicQueue, int] | None:
        """Return *offsets* by queue. Raises KeyError for a queue that is in none of the stores."""
        if offsets is None:
            return None
        for queue in offsets:
            self._stores.of(queue)
        return {_named_queue(queue): offset for queue, offset in offsets.items()}

    def _require_group(self) -> None:
        self._process.require()
        if self._group is None:
            raise ValueError("a consumer without a group cannot commit: give group")

    def _wake(self) -> None:
        self._stores.wake()

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self, *, commit: bool = True) -> None:
        """Leave the group.

        With auto_commit, first commit all handed-out messages, unless *commit* is False.
        """
        if self._is_closed or not self._process.is_this_one:  # in a fork the member belongs to the other process
            return
        self._is_closed = True
        self._stores.close(commit=commit)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the consumer. After an exception, the last messages handed out are not committed."""
        self.close(commit=kind is None)


def _named_once(topics: str | Iterable[str], queues: Iterable[tuple[str, int]]) -> tuple[list[str], list[TopicQueue]]:
    names = [topics] if isinstance(topics, str) else list(topics)
    named = [_named_queue(queue) for queue in queues]
    if bool(names) == bool(named):
        raise ValueError("give either topics or queues: exactly one of the two")
    return names, named


def _named_queue(queue: tuple[str, int]) -> TopicQueue:
    """Return *queue* with its name's store, if it has one."""
    return queue if isinstance(queue, TopicQueue) else TopicQueue(*queue)


def _require_stores(urls: Sequence[str], named: Iterable[TopicQueue], folder: str | Path | None) -> None:
    """Raise ValueError if the arguments contradict each other."""
    if len(urls) > 1 and folder is not None:
        raise ValueError(f"store is {str(folder)!r}, but url names {len(urls)} stores: give the one of that store")
    for queue in named:
        if isinstance(queue, StoreQueue) and queue.store not in urls:
            raise ValueError(f"queues has {queue}, but url names only {', '.join(urls)}")


def _end_of_all(futures: Sequence[Future[None]]) -> Future[None]:
    """Return a future that ends with the last of *futures*, with the first error among them."""
    if len(futures) == 1:
        return futures[0]
    end: Future[None] = Future()
    left = len(futures)
    lock = threading.Lock()

    def note(_: Future[None]) -> None:
        nonlocal left
        with lock:
            left -= 1
            if left:
                return
        errors = [error for future in futures if (error := future.exception()) is not None]
        end.set_exception(errors[0]) if errors else end.set_result(None)

    for future in futures:
        future.add_done_callback(note)
    return end


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
