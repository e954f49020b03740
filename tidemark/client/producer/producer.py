"""Producer: sends messages, batches and tables to one or more writers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from tidemark.client.message import Message
from tidemark.client.message_queue import MessageQueue
from tidemark.client.own_process import OwnProcess
from tidemark.client.producer.accumulator import Accumulation, Accumulator
from tidemark.client.producer.batch_rules import require_batch
from tidemark.client.producer.compression import Compression
from tidemark.client.producer.delivery import SendTracker
from tidemark.client.producer.outbox import Outbox
from tidemark.client.producer.plain_send import PlainSend
from tidemark.client.producer.queue_choice import QueueChoice
from tidemark.client.producer.send_hooks import Hooks
from tidemark.client.producer.send_options import (
    MESSAGE_PARTS,
    PlaceOptions,
    SendOptions,
    message_of,
    require_place_options,
    require_send_options,
)
from tidemark.client.producer.sender import OVERHEAD, Sender
from tidemark.client.producer.writer_addresses import FixedList, RouteFile
from tidemark.client.producer.writer_pool import Writers
from tidemark.client.send_result import SendResult
from tidemark.client.tracing.spans import begin_send, is_tracing
from tidemark.client.unknown_keywords import suggests_keywords
from tidemark.client.validation import require_body, require_sendable_topic
from tidemark.client.values import Serializer, json_body
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.client.wire.channel import default_address
from tidemark.client.wire.pending_batches import PendingLimits
from tidemark.client.wire.topic_admin import Topics
from tidemark.client.wire.wire import Wire, checked_wire, default_wire
from tidemark.errors import StoreError
from tidemark.format.message_id import UniqueKeys
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES
from tidemark.tls.credentials import Credentials
from tidemark.v1 import commit_log_pb2

if TYPE_CHECKING:
    from tidemark.client.producer.send_table import TableResult
    from tidemark.client.producer.table_columns import TableLike

MAX_IN_FLIGHT_BYTES = 16 << 20
MAX_IN_FLIGHT_MESSAGES = 1 << 15


class Producer:
    """Sends to each of its writers over one stream. Thread-safe. Call `close`, or use it in a `with` statement.

    writers                 host:port or tls://host:port; several as a sequence, or separated by commas. Default:
                            those of route_file, then TIDEMARK_WRITER_ADDRESS, then 127.0.0.1:8081
    route_file              alternative to writers: a TOML or JSON file with one line ``name = "host:port"`` per
                            writer; the producer reads it again when it changes
    credentials             trusted CA, client certificate and token: see `Credentials`. Default: from the environment
    timeout_s               limit for each send, over all its attempts
    retries                 number of further queues to try for a batch that a writer has certainly not stored
    max_in_flight_bytes     limit of unanswered bytes per writer; further sends wait for answers
    max_in_flight_messages  limit of unanswered messages per writer. The default, 32,768, fits the largest batch and
                            one more message. Small messages cost about 1 KiB of memory each, and a limit in bytes
                            alone would let 100,000 of them wait. A packed batch counts as one
    max_message_size_bytes  limit for a body, and for a batch; the writer has its own limit
    accumulate              True, or an `Accumulation` with bounds: combine single sends into batches while others are
                            unanswered
    compress                True, or a `Compression`: compress the bodies of single sends. Off by default: it costs
                            more than it saves where bandwidth is cheap, and raw readers receive compressed bodies
    avoid_slow_writers      avoid a writer that answers late for a while, if others answer in time
    hooks                   functions to call around each send of messages, except `send_packed_async` and `send_table`
    wire                    remoting: send in frames over TCP if the writer offers that, which is faster; otherwise, and
                            with grpc, use gRPC. Default: TIDEMARK_CLIENT_WIRE, then remoting
    trace                   create a span for each send, and give messages its `traceparent` as a property; no effect
                            unless the program uses OpenTelemetry. See docs/tracing.md
    value_serializer        makes the body, bytes or text, of a send's `value`. Default: JSON, as for `send_json`

    Every send has a request id, so a repeat after an unknown outcome (a broken connection, a killed writer) is stored
    once: the producer repeats it only on the same writer and queue. It moves a batch to another writer only if the
    first one has certainly not stored it, and never if a key, a selector or a queue id chose the queue. Messages are
    stored in the order of sends, unless the writer rejects a batch temporarily (RESOURCE_EXHAUSTED) and later ones
    overtake it. A program that needs strict order even then must wait for each result.

    Futures are completed in the producer's own threads: a callback must not wait for another send.
    """

    @suggests_keywords
    def __init__(
        self,
        writers: str | Sequence[str] | None = None,
        *,
        route_file: str | PathLike[str] | None = None,
        credentials: Credentials | None = None,
        timeout_s: float = 10.0,
        retries: int = 2,
        max_in_flight_bytes: int = MAX_IN_FLIGHT_BYTES,
        max_in_flight_messages: int = MAX_IN_FLIGHT_MESSAGES,
        max_message_size_bytes: int = MAX_MESSAGE_SIZE_BYTES,
        accumulate: bool | Accumulation = False,
        compress: bool | Compression = False,
        avoid_slow_writers: bool = False,
        hooks: Hooks = Hooks(),  # noqa: B008 - Hooks is frozen
        wire: Wire | None = None,
        trace: bool = True,
        value_serializer: Serializer = json_body,
    ) -> None:
        if writers is not None and route_file is not None:
            raise ValueError("writers and route_file are both given: give one of them")
        listed = RouteFile(Path(route_file)) if route_file is not None else FixedList(writers or default_address())
        limits = PendingLimits(max_in_flight_bytes, max_in_flight_messages)
        self._writers = Writers(
            listed,
            timeout_s=timeout_s,
            limits=limits,
            credentials=credentials or Credentials.from_environment(),
            wire=default_wire() if wire is None else checked_wire(wire),
        )
        choice = QueueChoice(self._writers, avoid_slow=avoid_slow_writers)
        self._delivery = SendTracker(self._writers, timeout_s=timeout_s)
        sender = Sender(
            self._writers, choice, self._delivery, timeout_s=timeout_s, retries=retries, observe=avoid_slow_writers
        )
        self._accumulator: Accumulator | None = None
        if accumulate:
            bounds = Accumulation() if accumulate is True else accumulate
            self._accumulator = Accumulator(bounds, sender, timeout_s=timeout_s)
            self._delivery.hold(self._accumulator)
        compression = (Compression() if compress is True else compress) or None
        request_ids = UniqueKeys()
        self._outbox = Outbox(
            self._writers,
            choice,
            sender,
            request_ids=request_ids,
            accumulator=self._accumulator,
            compression=compression,
        )
        self._plain_send: PlainSend | None = None
        if hooks == Hooks() and not avoid_slow_writers:
            uncompressed = max_message_size_bytes if compression is None else compression.over_bytes - 1
            max_size = min(max_message_size_bytes, uncompressed)
            self._plain_send = PlainSend(
                self._writers,
                choice,
                sender,
                request_ids=request_ids,
                accumulator=self._accumulator,
                max_size=max_size,
            )
        self._process = OwnProcess("Producer")
        self._serializer = value_serializer
        self._hooks = hooks
        self._trace = trace
        self._max_message_size = max_message_size_bytes

    # ── sending ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> SendResult:
        """Send one message and wait until it is acknowledged. Raises the StoreError for the writer's reason.

        message  a Message, or a topic followed by a body: send("orders", b"...", key="k1", tag="A")
        options  without a body: model, a pydantic model's instance, or value, for `value_serializer`;
                 without a Message: key, keys, tag, properties, delay_level, flag (see `Message`);
                 always: queue_id, selector, expected_next_offset, request_id (see `PlaceOptions`)
        """
        if not options and type(message) is str and type(body) is bytes:
            result = None if (plain := self._plain()) is None else plain.send(message, body)
            return result or self._send_and_wait(Message(message, body), options)
        require_send_options(options, call="send")
        one = message_of(message, body, options, self._serializer)
        if MESSAGE_PARTS.issuperset(options) and (plain := self._plain()) is not None:
            result = plain.send_message(one)
            if result is not None:
                return result
        return self._send_and_wait(one, options)

    def send_json(self, topic: str, value: object, /, **options: Unpack[SendOptions]) -> SendResult:
        """Send *value* as JSON, as `send` sends a body. Consumers call `message.json()`.

        value: dicts, lists, texts, numbers; also dataclasses, times, UUIDs, enums and pydantic's models; or TypeError
        """
        return self.send(topic, json_body(value), **options)

    def _send_and_wait(self, message: Message, options: SendOptions) -> SendResult:
        return self._result(self._send(message, options, reader=AnswerReader.CALLER), 1)

    def send_async(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> Future[SendResult]:
        """Send one message and return a future of its result.

        It may still wait for room in flight, and for the topic's first route.
        """
        if not options and type(message) is str and type(body) is bytes:
            future = None if (plain := self._plain()) is None else plain.gather(message, body)
            if future is not None:
                return future
        require_send_options(options, call="send_async")
        return self._send(message_of(message, body, options, self._serializer), options)

    def _plain(self) -> PlainSend | None:
        """Return the short path for messages with only a topic and a body, if it applies now. Raises after a fork."""
        self._process.require()
        return None if self._trace and is_tracing() else self._plain_send

    def send_oneway(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> None:
        """Send one message without an answer: it is never repeated, and errors after the call are not reported."""
        require_send_options(options, call="send_oneway")
        self._send(message_of(message, body, options, self._serializer), options, once=True)

    def send_batch(self, messages: Iterable[Message], **options: Unpack[PlaceOptions]) -> SendResult:
        """Send several messages of one topic to one queue, all or none, and wait until they are acknowledged."""
        require_place_options(options, call="send_batch")
        batch = list(messages)
        return self._result(self._begin_batch(batch, options, reader=AnswerReader.CALLER), len(batch))

    def send_batch_async(self, messages: Iterable[Message], **options: Unpack[PlaceOptions]) -> Future[SendResult]:
        """Send a batch as `send_batch` does, and return a future of its result."""
        require_place_options(options, call="send_batch_async")
        return self._begin_batch(list(messages), options)

    def _begin_batch(
        self, batch: list[Message], options: PlaceOptions, *, reader: AnswerReader = AnswerReader.STREAM
    ) -> Future[SendResult]:
        self._process.require()
        require_batch(batch)
        require_sendable_topic(batch[0].topic)
        span = begin_send(batch[0].topic, len(batch)) if self._trace else None
        if span is None:
            return self._send_batch(batch, options, reader=reader)
        return span.around(lambda: self._send_batch(span.mark(batch), options, reader=reader))

    def _send_batch(self, batch: list[Message], options: PlaceOptions, *, reader: AnswerReader) -> Future[SendResult]:
        packed = self._outbox.pack(batch, options, max_size=self._max_message_size)
        self._hooks.begin(batch)
        future = self._outbox.send_batch(batch, packed, options, reader=reader)
        self._hooks.watch(batch, future)
        return future

    def send_packed_async(
        self, topic: str, packed: bytes, *, count: int = 1, **options: Unpack[PlaceOptions]
    ) -> Future[SendResult]:
        """Send a wire batch (RocketMQ's, docs/format.md) unchanged: the fastest path for already encoded messages.

        count  number of messages in the batch, for its span
        """
        require_place_options(options, call="send_packed_async")
        self._process.require()
        span = begin_send(topic, count) if self._trace else None
        if span is None:
            return self._outbox.send_packed(topic, packed, options, count=count, carrier={})
        return span.around(lambda: self._outbox.send_packed(topic, packed, options, count=count, carrier=span.carrier))

    @suggests_keywords
    def send_table(
        self,
        table: TableLike,
        topic: str,
        *,
        key: str | None = None,
        tag: str | None = None,
        body: str | None = None,
        unique_key: str | None = None,
        batch_size: int = 1000,
        on_acknowledged: Callable[[int], None] | None = None,
    ) -> TableResult:
        """Send every row as a message and wait until all are acknowledged. See `tidemark.client.producer.send_table`.

        table                       a table of pyarrow, pandas or polars, or any object with Arrow's C stream interface
        key, tag, body, unique_key  names of columns; a null or empty value means no key or tag. Without `body`, the
                                    body is the row as a JSON object
        batch_size                  rows per batch, at most 32,767
        on_acknowledged             called with the number of newly acknowledged rows, in the producer's own thread
        """
        from tidemark.client.producer.send_table import TableSend

        return TableSend(self, topic, batch_size=batch_size, on_acknowledged=on_acknowledged).send(
            table, key=key, tag=tag, body=body, unique_key=unique_key
        )

    def _result(self, future: Future[SendResult], messages: int) -> SendResult:
        """Return the result of *future*. `flush` does not report its failure, because the caller sees it."""
        try:
            return future.result()
        except StoreError:
            self._delivery.seen(messages)
            raise

    def _send(
        self, message: Message, options: SendOptions, *, once: bool = False, reader: AnswerReader = AnswerReader.STREAM
    ) -> Future[SendResult]:
        self._process.require()
        require_sendable_topic(message.topic)
        span = begin_send(message.topic, 1) if self._trace else None
        if span is None:
            return self._send_one(message, options, once=once, reader=reader)
        (marked,) = span.mark((message,))
        return span.around(lambda: self._send_one(marked, options, once=once, reader=reader))

    def _send_one(
        self, message: Message, options: SendOptions, *, once: bool, reader: AnswerReader
    ) -> Future[SendResult]:
        element = message.to_element()
        require_body(element.body, self._max_message_size)
        self._hooks.begin((message,))
        future = self._outbox.send(message, element, options, once=once, reader=reader)
        self._hooks.watch((message,), future)
        return future

    # ── queues and limits ───────────────────────────────────────────────────────────────────────────────────────────

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the queues of *topic* that accept messages, on all writers; refreshes the route from time to time."""
        self._process.require()
        self._writers.look()
        return self._writers.routes.route(topic).queues

    def would_wait(self, topic: str, size: int) -> bool:
        """Return True if an async send of *size* bytes would wait for a route, for room, or until the writer reads."""
        self._process.require()
        links = self._writers.links()
        return (
            self._writers.routes.known(topic) is None
            or (self._accumulator is not None and not self._accumulator.has_room(size))
            or any(link.is_choosing for link in links)
            or not all(link.stream.has_room(size + OVERHEAD) for link in links)
        )

    @property
    def address(self) -> str:
        """Return host:port of the first writer."""
        return self._writers.links()[0].address

    @property
    def topics(self) -> Topics:
        """Return the topic administration of the first writer; for another writer use `Topics(address)`."""
        self._process.require()
        return self._writers.links()[0].topics

    def log_info(self) -> commit_log_pb2.GetLogInfoResponse:
        """Return the current bounds, limits and identity of the first writer's log."""
        self._process.require()
        return self._writers.links()[0].log_info()

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything sent so far is acknowledged or has failed, for at most *timeout_s* (None: no limit).

        Return True if everything was answered in time and no asynchronous or one-way send failed since the last
        `flush`. A failure that `send` or `send_batch` raised does not count.
        """
        self._process.require()
        return self._delivery.flush(timeout_s)

    def close(self) -> bool:
        """Wait for answers for at most the producer's timeout, and close the connections. Unanswered sends fail.

        Log the number of messages given up. Return True if no send failed since the last `flush`. A program that ends
        without `close` does the same, unless a signal or `os._exit` ends it.
        """
        return self._delivery.close() if self._process.is_this_one else True

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
