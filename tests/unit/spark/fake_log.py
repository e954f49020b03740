"""FakeLog: a log of plain data that tests may change while it is read."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa

from tidemark.client.received_message import TopicQueue
from tidemark.errors import OffsetOutOfRangeError, OffsetTooSmallError, QueueIllegalError, TopicNotFoundError
from tidemark.read.messages.message_columns import SCHEMA
from tidemark.spark.source.log import Bounds, MessagePage, QueueOffset


class FakeMessage(NamedTuple):
    """A message; fields that are not given follow from its queue offset."""

    queue_offset: int
    store_ms: int = 0
    tag: str | None = None
    keys: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return the row in the library's columns."""
        return {
            "queue_offset": self.queue_offset,
            "physical_offset": 100 * self.queue_offset,
            "message_id": f"id{self.queue_offset}",
            "offset_msg_id": None,
            "store_timestamp_ms": self.store_ms,
            "born_timestamp_ms": self.store_ms - 1,
            "tag": self.tag,
            "keys": list(self.keys),
            "properties": {"color": "red"},
            "body": f"m{self.queue_offset}".encode(),
        }


def message_batch(messages: Iterable[FakeMessage]) -> pa.RecordBatch:
    """Return *messages* in the library's columns."""
    return pa.RecordBatch.from_pylist([one.row() for one in messages], schema=SCHEMA)


def run_of(start: int, end: int, *, first_ms: int = 0) -> list[FakeMessage]:
    """Return messages with start ≤ queue offset < end, one stored each millisecond."""
    return [FakeMessage(offset, first_ms + offset - start) for offset in range(start, end)]


class FakeLog:
    """Messages by queue. The log of a queue without messages begins and ends at 0.

    on_page  is called with the start offset of each page
    halving  offset_at searches by halving, as a store does, which may find another boundary if times do not ascend
    """

    def __init__(
        self, queues: Mapping[TopicQueue, Iterable[FakeMessage]], *, page_size: int = 2, halving: bool = False
    ) -> None:
        self.queues = {queue: list(messages) for queue, messages in queues.items()}
        self.damaged: frozenset[int] = frozenset()
        self.on_page: Callable[[int], None] = lambda offset: None
        self.settled = 0
        self.knows_keys = True
        self.closed = 0
        self._page_size = page_size
        self._halving = halving

    def expire(self, queue: TopicQueue, below: int) -> None:
        """Remove the messages of *queue* below this offset."""
        self.queues[queue] = [one for one in self._messages(queue) if one.queue_offset >= below]

    def topics(self) -> list[str]:
        return sorted({queue.topic for queue in self.queues})

    def queues_of(self, topic: str) -> list[TopicQueue]:
        if topic not in self.topics():
            raise TopicNotFoundError(f"there is no topic {topic}", topic=topic)
        return sorted(queue for queue in self.queues if queue.topic == topic)

    def assigned(self, queue: TopicQueue) -> list[TopicQueue]:
        return [queue]

    def bounds(self, queue: TopicQueue) -> Bounds:
        messages = self._messages(queue)
        return Bounds(messages[0].queue_offset, messages[-1].queue_offset + 1) if messages else Bounds(0, 0)

    def wait_for(self, queue: TopicQueue, end: int) -> bool:
        return self.bounds(queue).max_offset >= end

    def offset_at(self, queue: TopicQueue, timestamp_ms: int) -> int | None:
        messages = self._messages(queue)
        if self._halving:
            messages = messages[bisect.bisect_left(messages, timestamp_ms, key=lambda one: one.store_ms) :]
            return messages[0].queue_offset if messages else None
        return next((one.queue_offset for one in messages if one.store_ms >= timestamp_ms), None)

    def end_within(self, queue: TopicQueue, start: int, end: int, max_bytes: int) -> int:
        """Return the end; every message has one byte."""
        return min(end, start + max_bytes)

    def pages(self, queue: TopicQueue, start: int, end: int, *, tags: frozenset[str] | None) -> Iterator[MessagePage]:
        while start < end:
            self.on_page(start)
            bounds = self.bounds(queue)
            if start < bounds.min_offset:
                raise OffsetTooSmallError("messages are gone", min_offset=bounds.min_offset)
            if start >= bounds.max_offset:
                raise OffsetOutOfRangeError("there is nothing yet", max_offset=bounds.max_offset)
            following = min(start + self._page_size, end, bounds.max_offset)
            yield self._page(queue, range(start, following), tags)
            start = following

    def places_of_key(self, topic: str, key: str, most: int) -> list[QueueOffset] | None:
        """Return places of messages with the key, and some without."""
        found = [
            QueueOffset(queue, one.queue_offset)
            for queue, messages in self.queues.items()
            for one in messages
            if queue.topic == topic and (key in one.keys or one.queue_offset % 70 == 10)
        ]
        return found if self.knows_keys and len(found) <= most else None

    def settle(self) -> None:
        self.settled += 1

    def close(self) -> None:
        self.closed += 1

    def _messages(self, queue: TopicQueue) -> list[FakeMessage]:
        if queue not in self.queues:
            known = queue.topic in self.topics()
            raise (QueueIllegalError if known else TopicNotFoundError)(f"there is no {queue}")
        return self.queues[queue]

    def _page(self, queue: TopicQueue, offsets: range, tags: frozenset[str] | None) -> MessagePage:
        found = [one for one in self._messages(queue) if one.queue_offset in offsets]
        right = [one for one in found if one.queue_offset not in self.damaged]
        damage = [f"BODY_CRC at queue offset {one.queue_offset}" for one in found if one not in right]
        shown = [one for one in right if tags is None or one.tag in tags]
        return MessagePage(message_batch(shown), offsets.stop, damage)
