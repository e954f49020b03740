"""GatheredMessages: single messages that are sent as one batch, each with its own result (docs/format.md §15)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.batch_keys import with_made_keys, with_unique_keys
from tidemark.client.producer.sender import Outgoing
from tidemark.client.producer.shared_future import Completion, SharedFuture
from tidemark.client.producer.topic_routes import Route
from tidemark.client.send_result import SendResult
from tidemark.client.wire.plain_request import AppendRequest, PlainRequest
from tidemark.format.elements import ELEMENT_OVERHEAD, Parts, encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.properties import TAGS, TRACEPARENT, TRACESTATE, UNIQ_KEY
from tidemark.v1 import commit_log_pb2

KEYED_OVERHEAD = ELEMENT_OVERHEAD + len(f"{UNIQ_KEY}__") + 32  # with the key's name, two separators and 32 digits


class GroupKey(NamedTuple):
    """The common properties of a group's messages. queue: None for any queue of the topic."""

    topic: str
    queue: MessageQueue | None
    tag: str | None


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
        self._elements: list[Parts] = []
        self._own_ids: dict[int, str] = {}  # by the message's number, of the messages that have one
        self._ids: Sequence[str] = ()
        self._carrier: Mapping[str, str] = {}  # trace context of the first traced message

    def __len__(self) -> int:
        return len(self._elements)

    def add(
        self, element: Parts, properties: Mapping[str, str] | None, size: int, began: float
    ) -> SharedFuture[SendResult]:
        """Add a message of *size* bytes in the batch; return the future of its result.

        properties: the message's further ones; None without any
        """
        number = len(self._elements)
        self._elements.append(element)
        if properties:
            self._add_properties(number, properties)
        self.size += size
        self.began = min(self.began, began)
        return SharedFuture(self.answers, number)

    def _add_properties(self, number: int, properties: Mapping[str, str]) -> None:
        own = properties.get(UNIQ_KEY)
        if own:
            self._own_ids[number] = own
        if not self._carrier and TRACEPARENT in properties:
            self._carrier = properties

    def outgoing(self, unique_keys: UniqueKeys) -> Outgoing:
        """Return the batch. Each message has a UNIQ_KEY; on a batch topic, the messages' tag becomes the batch's."""
        self.answers.count = len(self._elements)
        if self._own_ids:
            own = [self._own_ids.get(number) for number in range(len(self))]
            self._ids = [given or new for given, new in zip(own, unique_keys.make_many(len(self)), strict=True)]
            self._elements = [*with_unique_keys(self._elements, own, self._ids)]
        else:
            self._ids, self._elements = with_made_keys(self._elements, unique_keys)
        return self._outgoing(self._elements, self._ids[0], is_final=False)

    def singles(self) -> list[tuple[SharedFuture[SendResult], Outgoing]]:
        """Return the messages of a refused batch as batches of one."""
        parts = zip(self.answers.futures(), self._elements, self._ids, strict=True)
        return [(future, self._outgoing([element], name, is_final=True)) for future, element, name in parts]

    def complete(self, batch: SendResult) -> None:
        """Give each message its own result, derived from the result of the batch."""
        names, raw = self._ids, batch.raw_physical_offsets
        step = 8 if len(raw) > 8 else 0  # an inner batch is a single record

        def result_of(number: int) -> SendResult:
            place = raw[step * number : step * number + 8]
            return batch.of_one(number, physical_offset=place, message_id=names[number])

        self.answers.set_results(result_of)

    def _outgoing(self, elements: list[Parts], request_id: str, *, is_final: bool) -> Outgoing:
        batch_tag = self.key.tag if self._route.is_batch else None
        request: AppendRequest
        if self._carrier or batch_tag:
            request = commit_log_pb2.AppendBatchRequest(
                topic=self.key.topic,
                request_id=request_id,
                traceparent=self._carrier.get(TRACEPARENT),
                tracestate=self._carrier.get(TRACESTATE),
                properties={TAGS: batch_tag} if batch_tag else None,
            )
        else:
            request = PlainRequest(self.key.topic, request_id)
        packed = encode_elements(elements)
        return Outgoing(
            request,
            packed,
            len(elements),
            self.key.queue,
            self._route,
            wait=False,
            is_final=is_final,
            began=self.began,
        )
