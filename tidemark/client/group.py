"""Group: single messages that go as one batch, each with a result of its own (spec 10.6)."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple

from tidemark.client.message_queue import MessageQueue
from tidemark.client.routes import Route
from tidemark.client.send_result import SendResult
from tidemark.client.sender import Outgoing
from tidemark.format.elements import ELEMENT_OVERHEAD, Element, encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.properties import TAGS, UNIQ_KEY
from tidemark.v1 import commit_log_pb2

_UNIQUE_KEY_SIZE = len(UNIQ_KEY) + 1 + 32 + 1


class GroupKey(NamedTuple):
    """What the messages of one group have in common. queue: None for any queue of the topic."""

    topic: str
    queue: MessageQueue | None
    tag: str | None


class Member(NamedTuple):
    """One message of a group. unique_key: its own, where it brought one."""

    element: Element
    unique_key: str | None
    future: Future[SendResult]

    @property
    def size(self) -> int:
        """Bytes in the batch."""
        return ELEMENT_OVERHEAD + len(self.element.body) + len(self.element.properties) + _UNIQUE_KEY_SIZE


class Group:
    """Members in the order of their sends. due: time.monotonic() at which it goes at the latest."""

    def __init__(self, key: GroupKey, route: Route, due: float) -> None:
        self.key = key
        self.due = due
        self.size = 0
        self.members: list[Member] = []
        self._route = route
        self._ids: list[str] = []

    def add(self, member: Member, size: int) -> None:
        """Take one more, of *size* bytes."""
        self.members.append(member)
        self.size += size

    def outgoing(self, unique_keys: UniqueKeys) -> Outgoing:
        """The batch. Each message has a UNIQ_KEY; on a batch topic its tag is the whole batch's."""
        made = unique_keys.make_many(len(self.members))
        self._ids = [member.unique_key or new for member, new in zip(self.members, made, strict=True)]
        return self._outgoing(self._elements(), self._ids[0])

    def singles(self) -> list[tuple[Member, Outgoing]]:
        """The messages of a batch that was refused, each alone."""
        parts = zip(self.members, self._elements(), self._ids, strict=True)
        return [(member, self._outgoing([element], name)) for member, element, name in parts]

    def results(self, batch: SendResult) -> list[SendResult]:
        """Of each message, out of the result of all."""
        raw = batch.raw_physical_offsets
        step = 8 if len(raw) > 8 else 0  # an inner batch is one record
        return [
            SendResult(
                topic=batch.topic,
                queue_id=batch.queue_id,
                queue_offset=batch.queue_offset + number,
                count=1,
                physical_offset=int.from_bytes(raw[step * number : step * number + 8], "big"),
                end_physical_offset=batch.end_physical_offset,
                store_timestamp_ms=batch.store_timestamp_ms,
                status=batch.status,
                duplicate=batch.duplicate,
                term=batch.term,
                request_id=name,
                writer=batch.writer,
                store_host=batch.store_host,
                raw_physical_offsets=raw[step * number : step * number + 8],
            )
            for number, name in enumerate(self._ids)
        ]

    def _elements(self) -> list[Element]:
        return [
            Element(body, properties if member.unique_key else properties + b"UNIQ_KEY\x01%b\x02" % name.encode(), flag)
            for member, name in zip(self.members, self._ids, strict=True)
            for body, properties, flag in (member.element,)
        ]

    def _outgoing(self, elements: list[Element], request_id: str) -> Outgoing:
        request = commit_log_pb2.AppendBatchRequest(
            topic=self.key.topic, request_id=request_id, packed=encode_elements(elements)
        )
        if self.key.tag and self._route.is_batch:
            request.properties[TAGS] = self.key.tag
        return Outgoing(request, len(elements), self.key.queue, self._route, wait=False)
