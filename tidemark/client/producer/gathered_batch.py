"""GatheredMessages: single messages that are sent as one batch, each with its own result (docs/format.md §15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.batch_keys import with_unique_keys
from tidemark.client.producer.sender import Outgoing
from tidemark.client.producer.shared_future import Completion, SharedFuture
from tidemark.client.producer.topic_routes import Route
from tidemark.client.send_result import SendResult
from tidemark.format.elements import ELEMENT_OVERHEAD, Element, encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.properties import TAGS, TRACEPARENT, TRACESTATE, UNIQ_KEY
from tidemark.v1 import commit_log_pb2

_UNIQUE_KEY_SIZE = len(f"{UNIQ_KEY}__") + 32  # name, two separators and 32 digits


class GroupKey(NamedTuple):
    """The common properties of a group's messages. queue: None for any queue of the topic."""

    topic: str
    queue: MessageQueue | None
    tag: str | None


def size_of(element: Element) -> int:
    """Return the size of *element* in a group's batch, in bytes."""
    return ELEMENT_OVERHEAD + len(element.body) + len(element.properties) + _UNIQUE_KEY_SIZE


class GatheredMessages:
    """Messages in the order of their sends.

    began  time.monotonic() of the program's call for the earliest message; the batch's timeout counts from here
    due    time.monotonic() at which the group is sent at the latest
    """

    def __init__(self, key: GroupKey, route: Route, began: float, *, due: float) -> None:
        self.key = key
        self.began = began
        self.due = due
        self.size = 0
        self.answers: Completion[SendResult] = Completion()
        self._route = route
        self._elements: list[Element] = []
        self._own_ids: list[str | None] = []
        self._ids: list[str] = []
        self._carrier: Mapping[str, str] = {}  # trace context of the first traced message

    def __len__(self) -> int:
        return len(self._elements)

    def add(self, element: Element, properties: Mapping[str, str], size: int, began: float) -> SharedFuture[SendResult]:
        """Add a message of *size* bytes with these further *properties*; return the future of its result."""
        self._elements.append(element)
        self._own_ids.append(properties.get(UNIQ_KEY))
        if not self._carrier and TRACEPARENT in properties:
            self._carrier = properties
        self.size += size
        self.began = min(self.began, began)
        return self.answers.new()

    def outgoing(self, unique_keys: UniqueKeys) -> Outgoing:
        """Return the batch. Each message has a UNIQ_KEY; on a batch topic, the messages' tag becomes the batch's."""
        self._ids = [own or new for own, new in zip(self._own_ids, unique_keys.make_many(len(self)), strict=True)]
        self._elements = with_unique_keys(self._elements, self._own_ids, self._ids)
        return self._outgoing(self._elements, self._ids[0])

    def singles(self) -> list[tuple[SharedFuture[SendResult], Outgoing]]:
        """Return the messages of a refused batch as batches of one."""
        parts = zip(self.answers.futures(), self._elements, self._ids, strict=True)
        return [(future, self._outgoing([element], name)) for future, element, name in parts]

    def complete(self, batch: SendResult) -> None:
        """Give each message its own result, derived from the result of the batch."""
        names, raw = self._ids, batch.raw_physical_offsets
        step = 8 if len(raw) > 8 else 0  # an inner batch is a single record

        def result_of(number: int) -> SendResult:
            place = raw[step * number : step * number + 8]
            return batch._replace(
                queue_offset=batch.queue_offset + number,
                count=1,
                physical_offset=int.from_bytes(place, "big"),
                request_id=names[number],
                raw_physical_offsets=place,
                message_ids=(names[number],),
            )

        self.answers.set_results(result_of)

    def _outgoing(self, elements: list[Element], request_id: str) -> Outgoing:
        request = commit_log_pb2.AppendBatchRequest(
            topic=self.key.topic,
            request_id=request_id,
            traceparent=self._carrier.get(TRACEPARENT),
            tracestate=self._carrier.get(TRACESTATE),
        )
        if self.key.tag and self._route.is_batch:
            request.properties[TAGS] = self.key.tag
        packed = encode_elements(elements)
        return Outgoing(request, packed, len(elements), self.key.queue, self._route, wait=False, began=self.began)
