"""MemoryProducer: `Producer` for a MemoryLog."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Self, Unpack

from tidemark.client.message import Message
from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.batch_rules import require_batch
from tidemark.client.producer.send_options import (
    PlaceOptions,
    SendOptions,
    message_of,
    require_place_options,
    require_send_options,
)
from tidemark.client.send_result import SendResult
from tidemark.client.unknown_keywords import suggests_keywords
from tidemark.client.values import Serializer, json_body
from tidemark.format.primitives import queue_of_key
from tidemark.testing.memory_topics import WRITER, MemoryTopics

if TYPE_CHECKING:
    from tidemark.client.producer.send_table import TableResult
    from tidemark.client.producer.table_columns import TableLike


class MemoryProducer:
    """`Producer` for a MemoryLog. A future that it returns is complete."""

    def __init__(self, log: MemoryTopics, *, value_serializer: Serializer = json_body) -> None:
        self._log = log
        self._serializer = value_serializer
        self._turn = 0
        self._is_closed = False

    def send(
        self, message: Message | str, body: bytes | str | None = None, **options: Unpack[SendOptions]
    ) -> SendResult:
        """Send one message; see `Producer.send`."""
        require_send_options(options, call="send")
        return self._send([message_of(message, body, options, self._serializer)], options)

    def send_json(self, topic: str, value: object, /, **options: Unpack[SendOptions]) -> SendResult:
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

    def send_packed_async(
        self, topic: str, packed: bytes, *, count: int = 1, **options: Unpack[PlaceOptions]
    ) -> Future[SendResult]:
        """Send a wire batch of *count* messages and return a future of its result."""
        require_place_options(options, call="send_packed_async")
        self._require_open()
        return _done(
            lambda: self._log.append_packed(topic, packed, lambda queues: self._place(queues, options), options)
        )

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
        """Send every row of a table; see `Producer.send_table`."""
        from tidemark.client.producer.send_table import TableSend

        return TableSend(self, topic, batch_size=batch_size, on_acknowledged=on_acknowledged).send(
            table, key=key, tag=tag, body=body, unique_key=unique_key
        )

    def _require_open(self) -> None:
        if self._is_closed:
            raise ValueError("this producer is closed")

    def _send(self, batch: list[Message], options: PlaceOptions | SendOptions) -> SendResult:
        self._require_open()
        return self._log.append(batch, lambda queues: self._choose(queues, batch[0], options), options)

    def _choose(self, queues: int, message: Message, options: PlaceOptions | SendOptions) -> int:
        selector = options.get("selector")
        if options.get("queue_id") is None and selector is not None:
            return selector(self._queues_of(message.topic, queues), message).queue_id
        if options.get("queue_id") is None and message.first_key:
            return queue_of_key(message.first_key, queues)
        return self._place(queues, options)

    def _place(self, queues: int, options: PlaceOptions | SendOptions) -> int:
        """Return the queue that *options* names, or else the next one."""
        named = options.get("queue_id")
        if named is not None:
            return named.queue_id if isinstance(named, MessageQueue) else int(named)
        self._turn += 1
        return self._turn % queues

    def queues(self, topic: str) -> tuple[MessageQueue, ...]:
        """Return the queues to which messages of *topic* are sent."""
        self._log.create_topic(topic)
        return self._queues_of(topic, self._log.queue_count(topic))

    @staticmethod
    def _queues_of(topic: str, count: int) -> tuple[MessageQueue, ...]:
        return tuple(MessageQueue(topic, WRITER, number) for number in range(count))

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
