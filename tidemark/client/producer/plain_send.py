"""PlainSend: short paths for a message without options of its place, most of all for one with only a topic and a body.

They apply to a producer without hooks and traces, and skip what such a message does not need: options, a protobuf
request, a `Message` of a topic and a body. `Outbox` sends everything else.
"""

from __future__ import annotations

import functools
import time
from concurrent.futures import Future

from tidemark.client.message import Message
from tidemark.client.producer.accumulator import Accumulator
from tidemark.client.producer.queue_choice import QueueChoice
from tidemark.client.producer.sender import OVERHEAD, Sender
from tidemark.client.producer.topic_routes import Route
from tidemark.client.producer.writer_pool import Writers
from tidemark.client.send_result import SendResult
from tidemark.client.validation import require_sendable_topic
from tidemark.client.wire.lone_send import LoneSendStream
from tidemark.client.wire.loop_reader import LoopFuture
from tidemark.client.wire.plain_request import PlainRequest
from tidemark.format.elements import ELEMENT_OVERHEAD, encode_elements, encode_plain_element
from tidemark.format.message_id import UniqueKeys
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES, MAX_PROPERTIES_SIZE_BYTES
from tidemark.format.properties import TRACEPARENT, TRACESTATE, UNIQ_KEY
from tidemark.format.topic_name import RETRY_PREFIX

_LARGEST_OVERHEAD = OVERHEAD + ELEMENT_OVERHEAD + MAX_PROPERTIES_SIZE_BYTES
_TRACES = frozenset((TRACEPARENT, TRACESTATE))


class PlainSend:
    """The short paths of one producer. max_size: of a body, in bytes."""

    def __init__(
        self,
        writers: Writers,
        choice: QueueChoice,
        sender: Sender,
        *,
        request_ids: UniqueKeys,
        accumulator: Accumulator | None,
        max_size: int,
    ) -> None:
        self._writers = writers
        self._choice = choice
        self._sender = sender
        self._request_ids = request_ids
        self._accumulator = accumulator
        self._max_size = min(max_size, MAX_MESSAGE_SIZE_BYTES - _LARGEST_OVERHEAD)
        if accumulator is not None:
            self._max_size = min(self._max_size, accumulator.hold_bytes - 1)

    def send(self, topic: str, body: bytes) -> SendResult | None:
        """Send a message and return its result; None, without a change, if this path does not apply.

        It applies to a single writer with remoting frames, without an accumulator. Raises as `Producer.send`.
        """
        began = time.monotonic()
        way = self._way(topic, len(body), began)
        if way is None:
            return None
        stream, route = way
        queue = self._choice.next(route, topic)
        request = PlainRequest(topic, self._request_ids.make(), queue.queue_id)
        return self._sender.send_alone(stream, request, encode_plain_element(body), queue, began=began)

    def send_message(self, message: Message) -> SendResult | None:
        """Send *message* as `send` does a topic and a body. It must have no options of a place, such as a queue."""
        began, topic = time.monotonic(), message.topic
        way = self._way(topic, 1, began)
        if way is None:
            return None
        element = message.to_element()
        if not 0 < len(element.body) <= self._max_size or not _TRACES.isdisjoint(message.properties):
            return None
        stream, route = way
        key = message.first_key
        queue = self._choice.next(route, topic) if key is None else self._choice.by_key(topic, key)
        request = PlainRequest(topic, self._request_ids.make(), queue.queue_id)
        packed, own_id = encode_elements((element,)), message.properties.get(UNIQ_KEY)
        return self._sender.send_alone(stream, request, packed, queue, began=began, own_id=own_id)

    def begin_on_loop(self, topic: str, body: bytes) -> LoopFuture | None:
        """Send as `send` does, but return the future of the result. Call it on an event loop, which reads it.

        Also None: it would wait for room in flight, or for the writer to take the bytes.
        """
        began = time.monotonic()
        way = self._way(topic, len(body), began)
        if way is None or not way[0].has_room(len(body) + OVERHEAD):
            return None
        stream, route = way
        queue = self._choice.next(route, topic)
        request = PlainRequest(topic, self._request_ids.make(), queue.queue_id)
        return self._sender.begin_on_loop(stream, request, encode_plain_element(body), queue, began=began)

    def _way(self, topic: str, size: int, now: float) -> tuple[LoneSendStream, Route] | None:
        """Return the stream and the route for a body of *size* bytes; None if the path does not apply."""
        if self._accumulator is not None:
            return None
        require_sendable_topic(topic)
        writers = self._writers
        writers.look()
        links, route = writers.by_address, writers.routes.known(topic, now)
        if route is None or len(links) != 1 or not 0 < size <= self._max_size:
            return None
        (link,) = links.values()
        stream = link.stream
        return (stream, route) if type(stream) is LoneSendStream else None  # not gRPC, and connected

    def gather(self, topic: str, body: bytes) -> Future[SendResult] | None:
        """Add a message to a group, and return its future; None, without a change, if this path does not apply.

        It applies with an accumulator. Raises as `Producer.send_async`.
        """
        accumulator = self._accumulator
        if accumulator is None or not _may_gather(topic):
            return None
        began = time.monotonic()
        self._writers.look()
        route = self._writers.routes.known(topic, began)
        if route is None or not 0 < len(body) <= self._max_size:
            return None
        return accumulator.add_element((topic, None, None), (body, b"", 0), None, route, began)


@functools.lru_cache(maxsize=1024)
def _may_gather(topic: str) -> bool:
    """Return True if messages of *topic* may share a batch. Raises as `require_sendable_topic`."""
    require_sendable_topic(topic)
    return not topic.startswith(RETRY_PREFIX)
