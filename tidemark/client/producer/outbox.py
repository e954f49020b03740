"""Outbox: chooses queue and request for checked messages, and sends them alone or in groups."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from tidemark.client.message import Message
from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.accumulator import Accumulator
from tidemark.client.producer.batch_keys import KeyedBatch, pack_batch
from tidemark.client.producer.batch_rules import is_delayed
from tidemark.client.producer.compression import Compression
from tidemark.client.producer.queue_choice import QueueChoice
from tidemark.client.producer.send_options import MESSAGE_PARTS, PlaceOptions, SendOptions, request_id_of
from tidemark.client.producer.sender import Outgoing, Sender
from tidemark.client.producer.writer_pool import Writers
from tidemark.client.send_result import SendResult
from tidemark.client.wire.answer_reader import AnswerReader
from tidemark.client.wire.plain_request import AppendRequest, PlainRequest
from tidemark.format.elements import Element, encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.properties import TRACEPARENT, TRACESTATE, UNIQ_KEY
from tidemark.format.topic_name import RETRY_PREFIX
from tidemark.v1 import commit_log_pb2


class Outbox:
    """The outbox of one producer. Each message has its own future, even in a group."""

    def __init__(
        self,
        writers: Writers,
        choice: QueueChoice,
        sender: Sender,
        *,
        request_ids: UniqueKeys,
        accumulator: Accumulator | None,
        compression: Compression | None,
    ) -> None:
        self._writers = writers
        self._choice = choice
        self._sender = sender
        self._accumulator = accumulator
        self._compression = compression
        self._request_ids = request_ids

    def send(
        self, message: Message, element: Element, options: SendOptions, *, once: bool, reader: AnswerReader
    ) -> Future[SendResult]:
        """Send one message in a group if allowed; otherwise alone, after the held messages of its topic."""
        began = time.monotonic()
        queue = self._queue_of(message, options)
        accumulator = self._accumulator
        if accumulator is None:
            return self._send_alone(message, element, queue, options, once=once, began=began, reader=reader)
        if once or not (accumulator.takes(element) and self._may_gather(message, element, options)):
            accumulator.release(message.topic)
            return self._send_alone(message, element, queue, options, once=once, began=began, reader=reader)
        route = self._writers.routes.route(message.topic)
        return accumulator.add(message, element, queue, route, began=began)

    def pack(self, messages: Sequence[Message], options: PlaceOptions, *, max_size: int) -> KeyedBatch:
        """Pack *messages* into a wire batch of at most *max_size* bytes in which each has a UNIQ_KEY."""
        return pack_batch(messages, request_id_of(options), self._request_ids, max_size=max_size)

    def send_batch(
        self, messages: Sequence[Message], batch: KeyedBatch, options: PlaceOptions, *, reader: AnswerReader
    ) -> Future[SendResult]:
        """Send *messages*, which *batch* has packed."""
        began = time.monotonic()
        first = messages[0]
        if self._accumulator is not None:
            self._accumulator.release(first.topic)
        request = self._request(first.topic, options, carrier=first.properties, request_id=batch.request_id)
        queue = self._queue_of(first, options)
        return self._sender.send(
            Outgoing(
                request,
                batch.packed,
                len(messages),
                queue,
                began=began,
                message_ids=batch.message_ids,
                reader=reader,
            )
        )

    def send_packed(
        self, topic: str, packed: bytes, options: PlaceOptions, *, count: int, carrier: Mapping[str, str]
    ) -> Future[SendResult]:
        """Send a wire batch of *count* messages unchanged; in flight it counts as one. carrier: its trace context."""
        began = time.monotonic()
        request = self._request(topic, options, carrier=carrier)
        return self._sender.send(
            Outgoing(request, packed, 1, self._placed(topic, options), began=began, messages=count)
        )

    def _send_alone(
        self,
        message: Message,
        element: Element,
        queue: MessageQueue | None,
        options: SendOptions,
        *,
        once: bool,
        began: float,
        reader: AnswerReader,
    ) -> Future[SendResult]:
        sys_flag = 0
        if self._compresses(element) and not self._writers.routes.route(message.topic).is_batch:
            assert self._compression is not None
            body, sys_flag = self._compression.apply(element.body)
            element = element._replace(body=body)
        packed = encode_elements((element,))
        request = self._request(message.topic, options, carrier=message.properties, sys_flag=sys_flag)
        message_ids = (message.properties.get(UNIQ_KEY) or request.request_id,)
        return self._sender.send(
            Outgoing(request, packed, 1, queue, began=began, once=once, message_ids=message_ids, reader=reader)
        )

    def _compresses(self, element: Element) -> bool:
        return self._compression is not None and len(element.body) >= self._compression.over_bytes

    def _may_gather(self, message: Message, element: Element, options: SendOptions) -> bool:
        return (
            not (options and _is_alone(options))
            and not is_delayed(message)
            and not message.topic.startswith(RETRY_PREFIX)
            and not self._compresses(element)
        )

    def _request(
        self,
        topic: str,
        options: PlaceOptions | SendOptions,
        *,
        carrier: Mapping[str, str],
        sys_flag: int = 0,
        request_id: str | None = None,
    ) -> AppendRequest:
        """Return the request without its messages."""
        is_placed = options and not MESSAGE_PARTS.issuperset(options)
        is_traced = carrier and (TRACEPARENT in carrier or TRACESTATE in carrier)
        if not (is_placed or is_traced or sys_flag):
            return PlainRequest(topic, request_id or self._request_ids.make())
        return commit_log_pb2.AppendBatchRequest(
            topic=topic,
            request_id=request_id or request_id_of(options) or self._request_ids.make(),
            expected_next_offset=options.get("expected_next_offset"),
            sys_flag=sys_flag,
            reconsume_times=options.get("reconsume_times", 0),
            traceparent=carrier.get(TRACEPARENT),
            tracestate=carrier.get(TRACESTATE),
        )

    def _queue_of(self, message: Message, options: PlaceOptions | SendOptions) -> MessageQueue | None:
        """Return the queue that *message* must go to; None if any queue is allowed."""
        if not options and not message.keys:
            self._writers.look()
            return None
        queue = self._placed(message.topic, options)
        selector = options.get("selector")
        if selector is not None:
            return selector(self._writers.routes.route(message.topic).queues, message)
        key = message.first_key
        if queue is None and key is not None:
            return self._choice.by_key(message.topic, key)
        return queue

    def _placed(self, topic: str, options: PlaceOptions | SendOptions) -> MessageQueue | None:
        """Return the queue that *options* name; None without one."""
        self._writers.look()
        queue_id = options.get("queue_id")
        return self._choice.named(topic, queue_id) if isinstance(queue_id, int) else queue_id


def _is_alone(options: SendOptions) -> bool:
    """Return True if *options* have a condition or an identity, which a batch has as a whole."""
    return (
        options.get("request_id") is not None
        or options.get("expected_next_offset") is not None
        or bool(options.get("reconsume_times"))
    )
