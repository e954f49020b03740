"""MemoryTopics: topics, messages and groups in memory, which the producers and consumers of a MemoryLog share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from tidemark.client.message import Message
from tidemark.client.producer.batch_keys import KeyedBatch, derived_keys, pack_batch
from tidemark.client.producer.send_options import PlaceOptions, SendOptions, request_id_of
from tidemark.client.received_message import ReceivedMessage, TopicQueue
from tidemark.client.send_result import SendResult, SendStatus
from tidemark.client.validation import require_sendable_topic
from tidemark.errors import QueueIllegalError
from tidemark.format.elements import Element, decode_elements
from tidemark.format.message_id import UniqueKeys, encode_offset_message_id
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES
from tidemark.format.properties import KEYS, TAGS, UNIQ_KEY, decode_properties, split_keys

WRITER = "memory:8081"
_HOST = bytes((127, 0, 0, 1)) + (8081).to_bytes(4, "big")


class Member(Protocol):
    """A consumer of a group."""

    topics: list[str]

    def commit_if_automatic(self) -> None:
        """With auto_commit, commit the messages that were handed out."""


class Group(NamedTuple):
    """Members in the order in which they joined, and committed offsets."""

    members: list[Member]
    committed: dict[TopicQueue, int]


class MemoryTopics:
    """Topics in memory, for several threads. queues: of a topic that a send creates.

    changed  protects everything, and is notified of each append
    groups   by name
    """

    def __init__(self, *, queues: int = 4) -> None:
        self._queues = queues
        self._topics: dict[str, list[list[ReceivedMessage]]] = {}
        self._results: dict[str, SendResult] = {}  # by request id
        self._end = 0
        self._unique_keys = UniqueKeys()
        self.changed = threading.Condition()
        self.groups: dict[str, Group] = {}

    def create_topic(self, name: str, *, queues: int | None = None) -> None:
        """Create a topic, unless it exists."""
        with self.changed:
            self._topics.setdefault(name, [[] for _ in range(queues or self._queues)])

    def messages(self, topic: str) -> list[ReceivedMessage]:
        """Return all messages of *topic*, in the order in which they were sent; [] if there is no such topic."""
        with self.changed:
            found = [message for queue in self._topics.get(topic, []) for message in queue]
        return sorted(found, key=lambda message: message.physical_offset)

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
        batch = pack_batch(messages, request_id_of(options), self._unique_keys, max_size=MAX_MESSAGE_SIZE_BYTES)
        return self._append(messages[0].topic, batch, choose, options)

    def append_packed(
        self, topic: str, packed: bytes, choose: Callable[[int], int], options: PlaceOptions
    ) -> SendResult:
        """Store a wire batch in the queue that *choose* returns for a number of queues."""
        own = [decode_properties(element.properties).get(UNIQ_KEY) for element in decode_elements(packed)]
        request_id = request_id_of(options) or own[0] or self._unique_keys.make()
        keys = [key or made for key, made in zip(own, derived_keys(request_id, len(own)), strict=True)]
        return self._append(topic, KeyedBatch(packed, request_id, keys), choose, options)

    def _append(
        self, topic: str, batch: KeyedBatch, choose: Callable[[int], int], options: PlaceOptions | SendOptions
    ) -> SendResult:
        require_sendable_topic(topic)
        with self.changed:
            if batch.request_id in self._results:
                return self._results[batch.request_id]._replace(duplicate=True)
            self.create_topic(topic)
            queue_id, queues = choose(self.queue_count(topic)), self.queue_count(topic)
            if not 0 <= queue_id < queues:
                raise QueueIllegalError(
                    f"queue {queue_id} does not accept messages of the topic; it has {queues}",
                    queue_id=queue_id,
                    queues=queues,
                )
            result = self._store(TopicQueue(topic, queue_id), batch, int(options.get("reconsume_times", 0)))
            self._results[batch.request_id] = result
            self.changed.notify_all()
        return result

    def _store(self, queue: TopicQueue, batch: KeyedBatch, reconsume_times: int) -> SendResult:
        stored = self.queue(queue)
        first, begin, now_ms = len(stored), self._end, time.time_ns() // 1_000_000
        places = []
        for element, message_id in zip(decode_elements(batch.packed), batch.message_ids, strict=True):
            places.append(self._end)
            stored.append(self._received(queue, len(stored), element, message_id, now_ms, reconsume_times))
            self._end += len(element.body) + len(element.properties) + 1
        return SendResult(
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=first,
            count=len(places),
            physical_offset=begin,
            end_physical_offset=self._end,
            store_timestamp_ms=now_ms,
            status=SendStatus.PUT_OK,
            duplicate=False,
            term=1,
            request_id=batch.request_id,
            writer=WRITER,
            store_host=_HOST,
            raw_physical_offsets=b"".join(place.to_bytes(8, "big") for place in places),
            message_ids=batch.message_ids,
        )

    def _received(
        self,
        queue: TopicQueue,
        queue_offset: int,
        element: Element,
        message_id: str,
        now_ms: int,
        reconsume_times: int,
    ) -> ReceivedMessage:
        properties = decode_properties(element.properties)
        properties.pop(UNIQ_KEY, None)
        return ReceivedMessage(
            *queue,
            queue_offset=queue_offset,
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
