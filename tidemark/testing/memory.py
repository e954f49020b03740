"""MemoryLog: topics in memory, with a producer and a consumer that have the client's interface. For unit tests.

It checks messages as the client does, chooses queues as the client does, and keeps order, offsets, groups and commits.
It has no network, so nothing ever fails or is late; delayed messages arrive at once. Test those with a TidemarkServer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Any, NamedTuple, Self, Unpack

from tidemark.client import Message, MessageQueue, ReceivedMessage, SendResult, SendStatus, TopicQueue
from tidemark.client.consumer.consumer import Offsets, Where
from tidemark.client.consumer.start_offsets import Place
from tidemark.client.json_body import json_body
from tidemark.client.producer.batch_rules import require_batch
from tidemark.client.producer.send_options import (
    PlaceOptions,
    SendOptions,
    message_of,
    request_id_of,
    require_place_options,
    require_send_options,
)
from tidemark.client.validation import require_batch_size, require_sendable_topic
from tidemark.errors import OffsetOutOfRangeError, QueueIllegalError, TopicNotFoundError
from tidemark.format.message_id import UniqueKeys, encode_offset_message_id
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES, queue_of_key
from tidemark.format.properties import KEYS, TAGS, decode_properties, split_keys

_WRITER = "memory:8081"
_HOST = bytes((127, 0, 0, 1)) + (8081).to_bytes(4, "big")
_DEAD_LETTERS = "%DLQ%"


class MemoryLog:
    """Topics in memory. queues: of a topic that a send creates. All methods may be called from several threads."""

    def __init__(self, *, queues: int = 4) -> None:
        self._queues = queues
        self._topics: dict[str, list[list[ReceivedMessage]]] = {}
        self._results: dict[str, SendResult] = {}  # by request id
        self._end = 0
        self._unique_keys = UniqueKeys()
        self.changed = threading.Condition()
        self.groups: dict[str, _Group] = {}

    def create_topic(self, name: str, *, queues: int | None = None) -> None:
        """Create a topic, unless it exists."""
        with self.changed:
            self._topics.setdefault(name, [[] for _ in range(queues or self._queues)])

    def producer(self) -> MemoryProducer:
        """Return a producer."""
        return MemoryProducer(self)

    def consumer(self, topics: str | Iterable[str] = (), **options: Any) -> MemoryConsumer:
        """Return a consumer; *options* are MemoryConsumer's."""
        return MemoryConsumer(self, topics, **options)

    def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return all messages of *topic*, in the order in which they were sent; [] if there is no such topic."""
        with self.changed:
            found = [message for queue in self._topics.get(topic, []) for message in queue]
        return sorted(found, key=lambda message: (message.physical_offset, message.queue_offset))

    def queue_count(self, topic: str) -> int:
        """Return the number of queues; 0 if there is no such topic."""
        return len(self._topics.get(topic, []))

    def queue(self, queue: TopicQueue) -> list[ReceivedMessage]:
        """Return the messages of one queue; their indexes are their offsets."""
        queues = self._topics.get(queue.topic, [])
        return queues[queue.queue_id] if queue.queue_id < len(queues) else []

    def append(
        self, messages: Sequence[Message], choose: Callable[[int], int], options: PlaceOptions | SendOptions
    ) -> SendResult:
        """Store a batch of one topic in the queue that *choose* returns for a number of queues."""
        topic = messages[0].topic
        require_sendable_topic(topic)
        elements = [message.to_element() for message in messages]
        require_batch_size(elements, sum(len(element.body) for element in elements), MAX_MESSAGE_SIZE_BYTES)
        request_id = request_id_of(options)
        with self.changed:
            if request_id is not None and request_id in self._results:
                return self._results[request_id]._replace(duplicate=True)
            self.create_topic(topic)
            queue_id = choose(len(self._topics[topic]))
            if not 0 <= queue_id < len(self._topics[topic]):
                raise QueueIllegalError(
                    f"queue {queue_id} does not accept messages of the topic; it has {len(self._topics[topic])}",
                    queue_id=queue_id,
                    queues=len(self._topics[topic]),
                )
            ids = self._ids(request_id, len(messages))
            result = self._store(TopicQueue(topic, queue_id), elements, ids, int(options.get("reconsume_times", 0)))
            self._results[result.request_id] = result
            self.changed.notify_all()
        return result

    def _ids(self, request_id: str | None, count: int) -> list[str]:
        if request_id is None:
            return self._unique_keys.make_many(count)
        return [request_id, *(f"{request_id}#{number}" for number in range(1, count))]

    def _store(
        self, queue: TopicQueue, elements: Sequence[Any], ids: Sequence[str], reconsume_times: int
    ) -> SendResult:
        stored = self._topics[queue.topic][queue.queue_id]
        first, begin, now_ms = len(stored), self._end, time.time_ns() // 1_000_000
        places = []
        for element, message_id in zip(elements, ids, strict=True):
            places.append(self._end)
            properties = decode_properties(element.properties)
            stored.append(
                ReceivedMessage(
                    *queue,
                    queue_offset=len(stored),
                    body=element.body,
                    tag=properties.pop(TAGS, None),
                    keys=tuple(split_keys(properties.pop(KEYS, ""))),
                    properties=properties,
                    message_id=message_id,
                    offset_msg_id=encode_offset_message_id(_HOST, self._end),
                    physical_offset=self._end,
                    store_timestamp_ms=now_ms,
                    born_timestamp_ms=now_ms,
                    flag=element.flag,
                    sys_flag=0,
                    reconsume_times=reconsume_times,
                    born_host="127.0.0.1:0",
                    store_host="127.0.0.1:8081",
                )
            )
            self._end += len(element.body) + len(element.properties) + 1
        return SendResult(
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=first,
            count=len(elements),
            physical_offset=begin,
            end_physical_offset=self._end,
            store_timestamp_ms=now_ms,
            status=SendStatus.PUT_OK,
            duplicate=False,
            term=1,
            request_id=ids[0],
            writer=_WRITER,
            store_host=_HOST,
            raw_physical_offsets=b"".join(place.to_bytes(8, "big") for place in places),
            message_ids=ids,
        )


class MemoryProducer:
    """`Producer` for a MemoryLog. A future that it returns is complete."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._turn = 0
        self._is_closed = False

    def send(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> SendResult:
        """Send one message; see `Producer.send`."""
        require_send_options(options, call="send")
        return self._send([message_of(message, body, options)], options)

    def send_json(self, topic: str, value: object, **options: Unpack[SendOptions]) -> SendResult:
        """Send *value* as JSON; see `Producer.send_json`."""
        return self.send(topic, json_body(value), **options)

    def send_async(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> Future[SendResult]:
        """Send one message and return a future of its result."""
        return _done(lambda: self.send(message, body, **options))

    def send_oneway(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> None:
        """Send one message without an answer."""
        self.send(message, body, **options)

    def send_batch(self, messages: Iterable[Message], **options: Unpack[PlaceOptions]) -> SendResult:
        """Send several messages of one topic to one queue, all or none."""
        require_place_options(options, call="send_batch")
        batch = list(messages)
        require_batch(batch)
        return self._send(batch, options)

    def send_batch_async(self, messages: Iterable[Message], **options: Unpack[PlaceOptions]) -> Future[SendResult]:
        """Send a batch and return a future of its result."""
        batch = list(messages)
        return _done(lambda: self.send_batch(batch, **options))

    def _send(self, batch: list[Message], options: PlaceOptions | SendOptions) -> SendResult:
        if self._is_closed:
            raise ValueError("this producer is closed")
        return self._log.append(batch, lambda queues: self._choose(queues, batch[0], options), options)

    def _choose(self, queues: int, message: Message, options: PlaceOptions | SendOptions) -> int:
        named, selector = options.get("queue_id"), options.get("selector")
        if named is not None:
            return named.queue_id if isinstance(named, MessageQueue) else int(named)
        if selector is not None:
            return selector(self._queues_of(message.topic, queues), message).queue_id
        if message.first_key:
            return queue_of_key(message.first_key, queues)
        self._turn += 1
        return self._turn % queues

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the queues to which messages of *topic* are sent."""
        self._log.create_topic(topic)
        return self._queues_of(topic, self._log.queue_count(topic))

    @staticmethod
    def _queues_of(topic: str, count: int) -> tuple[MessageQueue, ...]:
        return tuple(MessageQueue(topic, _WRITER, number) for number in range(count))

    def flush(self, timeout_s: float | None = None) -> bool:
        """Return True: nothing waits for an answer."""
        return True

    def close(self) -> bool:
        """Close the producer; return True, as for `flush`."""
        self._is_closed = True
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _done(send: Callable[[], SendResult]) -> Future[SendResult]:
    future = Future[SendResult]()
    future.set_result(send())
    return future


class _Group(NamedTuple):
    """Members in the order in which they joined, and committed offsets."""

    members: list[MemoryConsumer]
    committed: dict[TopicQueue, int]


class MemoryConsumer:
    """`Consumer` for a MemoryLog: topics, group, queues, start, tag, where, auto_commit, max_messages as there."""

    def __init__(
        self,
        log: MemoryLog,
        topics: str | Iterable[str] = (),
        *,
        group: str | None = None,
        queues: Iterable[tuple[str, int]] = (),
        start: Place = "earliest",
        tag: str | Sequence[str] | None = None,
        where: Where | None = None,
        auto_commit: bool = True,
        max_messages: int = 500,
    ) -> None:
        self._log = log
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self._named = [TopicQueue(*queue) for queue in queues]
        if bool(self._topics) == bool(self._named):
            raise ValueError("give either topics or queues: exactly one of the two")
        self._start, self._where = start, where
        self._tags = {tag} if isinstance(tag, str) else set(tag or ())
        self._auto_commit = auto_commit and group is not None
        self._max_messages = max_messages
        self._positions: dict[TopicQueue, int] = {}
        self._paused: set[TopicQueue] = set()
        self._is_closed = False
        self._ends = {queue: len(log.queue(queue)) for queue in self._wanted()}
        self._group = None if group is None else log.groups.setdefault(group, _Group([], {}))
        self._group_name = group
        if self._group is not None:
            self._group.members.append(self)

    def _wanted(self) -> list[TopicQueue]:
        """Return the queues that the group or this consumer alone reads."""
        return self._named or [
            TopicQueue(topic, number) for topic in self._topics for number in range(self._log.queue_count(topic))
        ]

    def _follow(self) -> None:
        """Take over the queues that this member has now, and leave the others."""
        wanted = self._wanted()
        if not wanted:
            raise TopicNotFoundError(f"none of the topics exists: {', '.join(self._topics)}", topic=self._topics[0])
        if self._group is not None and not self._named:
            members = self._group.members
            own, share = members.index(self), -(-len(wanted) // len(members))
            wanted = wanted[own * share : (own + 1) * share]
        self._positions = {queue: self._positions.get(queue, self._begin(queue)) for queue in wanted}

    def _begin(self, queue: TopicQueue) -> int:
        committed = None if self._group is None else self._group.committed.get(queue)
        if committed is not None:
            return committed
        if self._start == "latest":
            return self._ends.get(queue, 0)
        return self._resolve(queue, self._start)

    def _resolve(self, queue: TopicQueue, place: Place) -> int:
        messages = self._log.queue(queue)
        if isinstance(place, datetime):
            since_ms = place.timestamp() * 1000
            return sum(message.store_timestamp_ms < since_ms for message in messages)
        if isinstance(place, int):
            return place
        if place not in ("earliest", "latest"):
            raise ValueError(f"place must be an offset, a time, 'earliest' or 'latest', not {place!r}")
        return 0 if place == "earliest" else len(messages)

    def poll(self, timeout_s: float = 1.0, *, max_messages: int | None = None) -> list[ReceivedMessage]:
        """Return the next messages; wait up to *timeout_s* for the first; see `Consumer.poll`."""
        most = self._max_messages if max_messages is None else max_messages
        if most < 0:
            raise ValueError(f"max_messages is {most}; it must be at least 0")
        if self._is_closed:
            raise ValueError("this consumer is closed")
        with self._log.changed:
            if self._auto_commit:
                self._commit_positions()
            deadline = time.monotonic() + timeout_s
            while True:
                self._follow()
                found = self._take(most)
                left_s = deadline - time.monotonic()
                if found or not most or left_s <= 0:
                    return found
                self._log.changed.wait(left_s)

    def _take(self, most: int) -> list[ReceivedMessage]:
        found: list[ReceivedMessage] = []
        for queue in self._positions:
            messages = self._log.queue(queue)
            if self._positions[queue] > len(messages):
                offset = self._positions[queue]
                raise OffsetOutOfRangeError(
                    f"offset {offset} is above everything committed", **queue._asdict(), requested_offset=offset
                )
            while len(found) < most and queue not in self._paused and self._positions[queue] < len(messages):
                message = messages[self._positions[queue]]
                if self._is_wanted(message):
                    found.append(message)
                self._positions[queue] += 1
        return found

    def _is_wanted(self, message: ReceivedMessage) -> bool:
        if self._tags and message.tag not in self._tags:
            return False
        if self._where is None:
            return True
        if callable(self._where):
            return self._where(message)
        return self._where.items() <= message.properties.items()

    def __iter__(self) -> Iterator[ReceivedMessage]:
        while True:
            yield from self.poll(max_messages=1)

    def consume(
        self,
        handler: Callable[[ReceivedMessage], object],
        *,
        workers: int = 8,
        ordered: bool = False,
        max_attempts: int = 16,
        first_delay_level: int = 3,
        writer: str | None = None,
        on_error: Callable[[ReceivedMessage, BaseException], None] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        """Call *handler* with each message until *stop* is set; without *stop*, until all messages are handled.

        A failed message is tried again at once, and stored in %DLQ%group after *max_attempts*. workers, ordered,
        first_delay_level and writer have no effect: one message is handled at a time, in this thread.
        """
        if self._group is None:
            raise ValueError("consume needs a group that shares the queues of topics: give topics and group")
        while stop is None or not stop.is_set():
            messages = self.poll(timeout_s=0 if stop is None else 0.02, max_messages=1)
            for message in messages:
                self._handle(message, handler, max_attempts, on_error)
            self._commit_positions()
            if not messages and stop is None:
                return

    def _handle(
        self,
        message: ReceivedMessage,
        handler: Callable[[ReceivedMessage], object],
        max_attempts: int,
        on_error: Callable[[ReceivedMessage, BaseException], None] | None,
    ) -> None:
        for attempt in range(max_attempts):
            try:
                handler(message.replace(reconsume_times=attempt))
                return
            except Exception as error:
                if on_error is not None:
                    on_error(message, error)
        failed = Message(
            f"{_DEAD_LETTERS}{self._group_name}",
            message.body,
            tag=message.tag,
            keys=message.keys,
            properties=dict(message.properties),
        )
        self._log.create_topic(failed.topic, queues=1)
        self._log.append([failed], lambda _: 0, {"reconsume_times": max_attempts})

    @property
    def assignment(self) -> frozenset[TopicQueue]:
        """Return the queues that this consumer reads; none before the first `poll`."""
        return frozenset(self._positions)

    def position(self, queue: tuple[str, int]) -> int | None:
        """Return the queue offset of the next message to hand out."""
        return self._positions[TopicQueue(*queue)]

    def seek(self, queue: tuple[str, int], place: Place) -> None:
        """Continue at *place* in one of its queues. With auto_commit, the position is committed."""
        with self._log.changed:
            found = TopicQueue(*queue)
            if found not in self._positions:
                raise KeyError(found)
            self._positions[found] = self._resolve(found, place)
            if self._auto_commit:
                self._commit_positions([found])

    def seek_all(self, place: Place) -> None:
        """Continue at *place* in every queue that this consumer reads."""
        with self._log.changed:
            self._follow()
            for queue in self._positions:
                self.seek(queue, place)

    def pause(self, *queues: tuple[str, int]) -> None:
        """Hand out no messages of *queues* until `resume`."""
        self._paused |= {TopicQueue(*queue) for queue in queues}

    def resume(self, *queues: tuple[str, int]) -> None:
        """Hand out messages of *queues* again."""
        self._paused -= {TopicQueue(*queue) for queue in queues}

    def lag(self) -> dict[TopicQueue, int]:
        """Return the number of messages that are not handed out yet, by queue."""
        with self._log.changed:
            self._follow()
            return {
                queue: max(0, len(self._log.queue(queue)) - position) for queue, position in self._positions.items()
            }

    def commit(self, offsets: Offsets | None = None) -> None:
        """Commit *offsets*, or else the positions after all handed-out messages. ValueError without a group."""
        if self._group is None:
            raise ValueError("a commit needs a group: give group")
        with self._log.changed:
            if offsets is None:
                self._commit_positions()
            else:
                self._group.committed.update({TopicQueue(*queue): offset for queue, offset in offsets.items()})

    def commit_async(self, offsets: Offsets | None = None) -> Future[None]:
        """Commit as `commit` does, and return a complete future."""
        self.commit(offsets)
        future = Future[None]()
        future.set_result(None)
        return future

    def _commit_positions(self, queues: Iterable[TopicQueue] | None = None) -> None:
        assert self._group is not None
        chosen: Mapping[TopicQueue, int] = self._positions
        if queues is not None:
            chosen = {queue: self._positions[queue] for queue in queues}
        self._group.committed.update(chosen)

    def close(self, *, commit: bool = True) -> None:
        """Leave the group. With auto_commit, first commit all handed-out messages, unless *commit* is False."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._group is not None:
            with self._log.changed:
                if commit and self._auto_commit:
                    self._commit_positions()
                self._group.members.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the consumer. After an exception, the last messages handed out are not committed."""
        self.close(commit=kind is None)
