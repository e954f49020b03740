"""Producer: sends messages, batches and tables to one writer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

import grpc

from tidemark.client.append_stream import AppendStream
from tidemark.client.channel import default_address, open_channel
from tidemark.client.message import Message
from tidemark.client.send_result import SendResult
from tidemark.client.topics import Routes, Topics
from tidemark.client.wire_errors import error_of_rpc
from tidemark.errors import BatchEmptyError, MessageSizeExceededError, QueueIllegalError, TopicNotFoundError
from tidemark.format.elements import encode_elements
from tidemark.format.message_id import UniqueKeys
from tidemark.format.primitives import MAX_MESSAGE_SIZE_BYTES, java_hash
from tidemark.v1 import commit_log_pb2
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from tidemark.client.send_table import TableResult

_REQUEST_OVERHEAD = 256  # bytes of a request beside its batch


class Producer:
    """Sends to one writer over one stream. Safe to use from several threads; `close` it, or use it in a `with`.

    address              host:port; default TIDEMARK_WRITER_ADDRESS, else 127.0.0.1:8081
    timeout_s            for each send, over all its repeats
    max_in_flight_bytes  beyond it sends wait for answers

    Every send carries a request id, so that a repeat after an unknown outcome (a broken connection, a writer that was
    killed) is stored once. A send is repeated only on this writer and on the queue chosen before the first try. Order
    in a queue is the order of sends, unless the writer pushes a batch back (RESOURCE_EXHAUSTED) while later ones pass:
    who needs strict order even then waits for each result.

    Futures are completed in the producer's own thread: a callback must not wait for another send.
    """

    def __init__(
        self, address: str | None = None, *, timeout_s: float = 10.0, max_in_flight_bytes: int = 16 << 20
    ) -> None:
        self.address = address or default_address()
        self.timeout_s = timeout_s
        self._channel = open_channel(self.address)
        self._log = CommitLogServiceStub(self._channel)
        self._stream = AppendStream(self._channel, timeout_s=timeout_s, max_in_flight_bytes=max_in_flight_bytes)
        self.topics = Topics(timeout_s=timeout_s, channel=self._channel)
        self._routes = Routes(self.topics)
        self._request_ids = UniqueKeys()
        self._round = itertools.count(random.randrange(1 << 16))
        self._greatest_batch: int | None = None

    # ── sending ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(
        self,
        topic: str,
        body: Message | bytes | str,
        *,
        key: str | None = None,
        keys: Sequence[str] = (),
        tag: str | None = None,
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        expected_next_offset: int | None = None,
        request_id: str | None = None,
    ) -> SendResult:
        """Send one message and wait until it is acknowledged. Raises a StoreError: the writer's reason, typed.

        body                  a Message, or its bytes or text with key(s), tag and properties beside it
        queue_id              absent: by the hash of the first key, else round robin
        expected_next_offset  store only if the queue's next offset is this one; needs queue_id
        request_id            absent: made here. The same id and content again is stored once
        """
        message = _message(body, key=key, keys=keys, tag=tag, properties=properties)
        return self.send_batch(
            topic,
            [message],
            queue_id=queue_id,
            expected_next_offset=expected_next_offset,
            request_id=request_id,
        )

    def send_async(
        self,
        topic: str,
        body: Message | bytes | str,
        *,
        key: str | None = None,
        keys: Sequence[str] = (),
        tag: str | None = None,
        properties: Mapping[str, str] | None = None,
        queue_id: int | None = None,
        expected_next_offset: int | None = None,
        request_id: str | None = None,
    ) -> Future[SendResult]:
        """As `send`, without waiting for the answer. It does wait for room in flight, and for a topic's first route."""
        message = _message(body, key=key, keys=keys, tag=tag, properties=properties)
        return self.send_batch_async(
            topic,
            [message],
            queue_id=queue_id,
            expected_next_offset=expected_next_offset,
            request_id=request_id,
        )

    def send_batch(
        self,
        topic: str,
        messages: Iterable[Message],
        *,
        queue_id: int | None = None,
        expected_next_offset: int | None = None,
        request_id: str | None = None,
    ) -> SendResult:
        """Send several messages to one queue, all or none, and wait until they are acknowledged.

        queue_id  absent: by the hash of the first message's first key, else round robin
        """
        return self.send_batch_async(
            topic,
            messages,
            queue_id=queue_id,
            expected_next_offset=expected_next_offset,
            request_id=request_id,
        ).result()

    def send_batch_async(
        self,
        topic: str,
        messages: Iterable[Message],
        *,
        queue_id: int | None = None,
        expected_next_offset: int | None = None,
        request_id: str | None = None,
    ) -> Future[SendResult]:
        """As `send_batch`, without waiting for the answer."""
        batch = list(messages)
        if not batch:
            raise BatchEmptyError("a batch needs messages")
        if queue_id is None:
            queue_id = self.choose_queue(topic, batch[0].keys[0] if batch[0].keys else None)
        packed = encode_elements([message.to_element() for message in batch])
        return self.send_packed_async(
            topic, packed, queue_id=queue_id, expected_next_offset=expected_next_offset, request_id=request_id
        )

    def send_packed_async(
        self,
        topic: str,
        packed: bytes,
        *,
        queue_id: int,
        expected_next_offset: int | None = None,
        request_id: str | None = None,
    ) -> Future[SendResult]:
        """Send a wire batch (RocketMQ's, docs/format.md) as it is: the fastest path, for who has such bytes."""
        size = len(packed) + _REQUEST_OVERHEAD
        self._require_transportable(size)
        request = commit_log_pb2.AppendBatchRequest(
            topic=topic,
            queue_id=queue_id,
            request_id=request_id or self._request_ids.make(),
            expected_next_offset=expected_next_offset,
            packed=packed,
        )
        future = self._stream.submit(request, size)
        future.add_done_callback(lambda done: self._learn(topic, done))
        return future

    def send_table(
        self,
        table: pa.Table | pd.DataFrame,
        topic: str,
        *,
        key: str | None = None,
        tag: str | None = None,
        body: str | None = None,
        unique_key: str | None = None,
        batch_size: int = 1000,
        on_acknowledged: Callable[[int], None] | None = None,
    ) -> TableResult:
        """Send every row as a message and wait until all are acknowledged. See `tidemark.client.send_table`.

        key, tag, body, unique_key  names of columns; a null, or an empty text, is no key or tag. Without `body` the row
                                    as a JSON object
        batch_size                  rows in a batch, at most 32,767
        on_acknowledged             called with the number of rows newly acknowledged, in the producer's own thread
        """
        from tidemark.client.send_table import TableSend

        return TableSend(self, topic, batch_size=batch_size, on_acknowledged=on_acknowledged).send(
            table, key=key, tag=tag, body=body, unique_key=unique_key
        )

    # ── queues and limits ───────────────────────────────────────────────────────────────────────────────────────────

    def queues(self, topic: str) -> int:
        """Queues of *topic* that take messages; asks the writer now and then."""
        return self._routes.queues(topic)

    def choose_queue(self, topic: str, key: str | None) -> int:
        """The queue of *key*, |hashCode(key)| mod queues; without a key the next one."""
        queues = self.queues(topic)
        if queues < 1:
            raise QueueIllegalError("the topic has no queue that takes messages", topic=topic)
        return abs(java_hash(key)) % queues if key else next(self._round) % queues

    def would_wait(self, topic: str, size: int) -> bool:
        """Whether an async send of *size* bytes would wait first: for the topic's route, or for room in flight."""
        return self._routes.fresh_queues(topic) is None or not self._stream.has_room(size + _REQUEST_OVERHEAD)

    def _require_transportable(self, size: int) -> None:
        """Refuse what would end the stream for all: the writer's transport takes about twice its greatest batch."""
        if size <= MAX_MESSAGE_SIZE_BYTES:
            return
        if self._greatest_batch is None:
            self._greatest_batch = self.log_info().max_message_size_bytes
        if size > 2 * self._greatest_batch:
            raise MessageSizeExceededError("the batch is too large", size=size, limit=self._greatest_batch)

    def log_info(self) -> commit_log_pb2.GetLogInfoResponse:
        """Bounds, limits and identity of the writer's log, now."""
        try:
            request = commit_log_pb2.GetLogInfoRequest()
            answer: commit_log_pb2.GetLogInfoResponse = self._log.GetLogInfo(request, timeout=self.timeout_s)
        except grpc.RpcError as error:
            raise error_of_rpc(error) from error
        return answer

    def _learn(self, topic: str, done: Future[SendResult]) -> None:
        if isinstance(done.exception(), QueueIllegalError | TopicNotFoundError):
            self._routes.forget(topic)

    # ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def flush(self, timeout_s: float | None = None) -> bool:
        """Wait until everything sent so far is acknowledged or has failed; whether it came so far in time."""
        return self._stream.flush(timeout_s)

    def close(self) -> None:
        """Wait for answers within the timeout and end the connection. What is left fails with its reason."""
        self._stream.close()
        self._channel.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _message(
    body: Message | bytes | str,
    *,
    key: str | None,
    keys: Sequence[str],
    tag: str | None,
    properties: Mapping[str, str] | None,
) -> Message:
    if isinstance(body, Message):
        if key or keys or tag or properties:
            raise ValueError("a Message brings its own keys, tag and properties")
        return body
    return Message(body, tag=tag, keys=(*([key] if key else ()), *keys), properties=properties or {})
