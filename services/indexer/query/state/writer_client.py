"""Forwards requests to the writer's AppendBatch, SendBack and CreateTopic; the query service's only gRPC client."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from tidemark.client.errors.address_faults import members_of
from tidemark.client.tracing.spans import current_carrier
from tidemark.errors import (
    DeadlineExceededError,
    InSyncReplicasNotEnoughError,
    NotLeaderError,
    TlsFailedError,
    WriterUnreachableError,
)
from tidemark.format.message_id import encode_offset_message_id
from tidemark.format.properties import TRACEPARENT, TRACESTATE
from tidemark.store.originals.topics import TopicConfig
from tidemark.tls.credentials import Credentials
from tidemark.tracing.request_id import HEADER, current_request_id

from ..schema.request_bodies import AppendBody, TopicBody

if TYPE_CHECKING:
    import grpc.aio

_STATUSES = {1: "PUT_OK", 2: "FLUSH_DISK_TIMEOUT", 3: "FLUSH_SLAVE_TIMEOUT", 4: "SLAVE_NOT_AVAILABLE"}
_COMMITTED = (1, 4)
_RECEIVE_LIMIT_BYTES = 64 << 20
_MEMBER_S = 4.0  # for the answer of one member of a group; above the writer's replica_timeout_ms
_PAUSE_S = 0.1  # after a round in which no member wrote, and for a new writer's replicas
_REFUSED_FOR_NOW = (NotLeaderError, InSyncReplicasNotEnoughError)  # nothing was stored


class SentBackMessage(NamedTuple):
    """A stored message to send back. inner_index: its index in an inner batch; None if it is a record of its own."""

    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    inner_index: int | None


class WriterForward:
    """A channel to the writer, or to the members of its group, opened by the first call.

    It is opened again after a call that could not reach the writer over TLS, because the files of *credentials* may
    have been replaced.
    """

    def __init__(self, address: str | None, *, timeout_ms: int, credentials: Credentials) -> None:
        self._members = () if address is None else members_of(address)
        self._writing = 0  # index of the member that wrote last
        self._credentials = credentials
        self._timeout_s = timeout_ms / 1000
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def append(
        self, topic: str, body: AppendBody, request_id: str, *, authorization: str | None
    ) -> tuple[bool, dict[str, Any]]:
        """Return (acknowledged, the answer's JSON without store and topic). Raises as `_call`."""
        from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

        request = _request(topic, body, request_id)
        answer = await self._call(CommitLogServiceStub, "AppendBatch", request, authorization)
        return answer.status in _COMMITTED, _answer(answer)

    async def send_back(
        self,
        group: str,
        original: SentBackMessage,
        *,
        delay_level: int,
        max_reconsume_times: int | None,
        authorization: str | None,
        origin_message_id: str = "",
        keep_unique_key: bool = False,
    ) -> dict[str, Any]:
        """Store one message again for *group*; return SentBackAnswer's JSON. Raises as `_call`.

        origin_message_id, keep_unique_key: as in SendBackRequest
        """
        from tidemark.v1 import commit_log_pb2
        from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub

        request = commit_log_pb2.SendBackRequest(
            group=group,
            topic=original.topic,
            physical_offset=original.physical_offset,
            inner_index=original.inner_index,
            delay_level=delay_level,
            max_reconsume_times=max_reconsume_times,
            origin_message_id=origin_message_id,
            keep_unique_key=keep_unique_key,
        )
        answer = await self._call(CommitLogServiceStub, "SendBack", request, authorization, is_repeatable=False)
        stored = _answer(answer.appended)
        return {
            "topic": answer.topic,
            "dead_letter": answer.dead_letter,
            "status": stored["status"],
            "physical_offset": stored["physical_offset"],
            "offset_msg_id": stored["offset_msg_ids"][0],
            "duplicate": stored["duplicate"],
            "deliver_timestamp_ms": stored["deliver_timestamp_ms"],
        }

    async def create_topic(self, body: TopicBody, *, authorization: str | None) -> tuple[bool, TopicConfig]:
        """Return (created, the topic's current configuration). Raises as `_call`."""
        from tidemark.v1 import topics_pb2
        from tidemark.v1.topics_pb2_grpc import TopicServiceStub

        request = topics_pb2.CreateTopicRequest(
            name=body.topic, queue_count=body.queues or 0, attributes=body.attributes
        )
        answer = await self._call(TopicServiceStub, "CreateTopic", request, authorization)
        topic = answer.topic
        config = TopicConfig(
            topic.name,
            read_queues=topic.read_queue_count,
            write_queues=topic.write_queue_count,
            permission=topic.permission,
            attributes=dict(topic.attributes),
        )
        return answer.created, config

    async def _call(
        self, stub: Any, method: str, request: Any, authorization: str | None, *, is_repeatable: bool = True
    ) -> Any:
        """Return the writer's answer to *request*. A group is asked until a writer with enough replicas answers.

        Args:
            is_repeatable: a repeat has no second effect, so that another member may be asked without an answer.
            authorization: the caller's header, which the writer checks; None: the service sends its own token.

        Raises:
            WriterUnreachableError: the writer cannot be reached, or none is configured.
            TlsFailedError, TlsFilesError: the TLS connection failed, or its files cannot be used.
            StoreError: the writer refused the request; the class follows from its reason.
        """
        if not self._members:
            raise WriterUnreachableError("no writer is configured: set TIDEMARK_WRITER_ADDRESS")
        is_group = len(self._members) > 1
        deadline = time.monotonic() + self._timeout_s
        for tries in itertools.count(1):
            left_s = max(0.001, deadline - time.monotonic())
            timeout_s = min(left_s, _MEMBER_S) if is_group else left_s
            try:
                return await self._call_member(stub, method, request, authorization, timeout_s)
            except (*_REFUSED_FOR_NOW, WriterUnreachableError, DeadlineExceededError) as error:
                is_writer = isinstance(error, InSyncReplicasNotEnoughError)
                if not is_writer:
                    self._writing = (self._writing + 1) % len(self._members)
                may_repeat = is_repeatable or isinstance(error, _REFUSED_FOR_NOW)
                if not is_group or not may_repeat or time.monotonic() > deadline:
                    raise
            if is_writer or tries % len(self._members) == 0:
                await asyncio.sleep(_PAUSE_S)
        raise AssertionError

    async def _call_member(
        self, stub: Any, method: str, request: Any, authorization: str | None, timeout_s: float
    ) -> Any:
        import grpc

        from tidemark.client.errors.grpc_errors import error_of_rpc
        from tidemark.client.errors.tls_faults import with_cause

        address = self._members[self._writing]
        channel = self._channels.get(address)
        if channel is None:
            channel = self._channels[address] = _open(address, self._credentials)
        try:
            metadata = (*_same_request(), *self._shown(authorization))
            return await getattr(stub(channel), method)(request, timeout=timeout_s, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            failure = await asyncio.to_thread(with_cause, error_of_rpc(error), address, self._credentials)
            if (
                isinstance(failure, TlsFailedError | WriterUnreachableError)
                and self._credentials.target(address).is_tls
            ):
                self._close_channel(address)
            raise failure from error

    def _shown(self, authorization: str | None) -> tuple[tuple[str, str], ...]:
        shown = authorization or self._credentials.authorization()
        return () if shown is None else (("authorization", shown),)

    def _close_channel(self, address: str) -> None:
        """Close a channel. Running calls may end within the timeout; the next call opens another channel."""
        channel = self._channels.pop(address, None)
        if channel is not None:
            closing = asyncio.create_task(channel.close(self._timeout_s))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close the channels."""
        for channel in self._channels.values():
            await channel.close()


def _open(address: str, credentials: Credentials) -> grpc.aio.Channel:
    import grpc.aio

    from tidemark.client.wire.channel import credentials_of, proxy_option

    options = (
        ("grpc.max_send_message_length", -1),  # the writer limits the size
        ("grpc.max_receive_message_length", _RECEIVE_LIMIT_BYTES),
        ("grpc.max_reconnect_backoff_ms", 1_000),
        proxy_option(),
    )
    target = credentials.target(address)
    if not target.is_tls:
        return grpc.aio.insecure_channel(target.address, options=options)
    return grpc.aio.secure_channel(target.address, credentials_of(credentials), options=options)


def _same_request() -> tuple[tuple[str, str], ...]:
    """Return the metadata that gives the request the same id in the writer's log."""
    request_id = current_request_id()
    return () if request_id is None else ((HEADER, request_id),)


def _request(topic: str, body: AppendBody, request_id: str) -> Any:
    from tidemark.v1 import commit_log_pb2

    carrier = current_carrier()
    messages = [
        commit_log_pb2.Message(
            body=message.raw_body(),
            tag=message.tag or "",
            keys=message.keys,
            properties=carrier | message.properties,
            flag=message.flag,
        )
        for message in body.messages
    ]
    return commit_log_pb2.AppendBatchRequest(
        topic=topic,
        queue_id=body.queue_id,
        routing_key=body.routing_key or "",
        request_id=request_id,
        expected_next_offset=body.expected_next_offset,
        messages=commit_log_pb2.MessageList(messages=messages),
        traceparent=carrier.get(TRACEPARENT),
        tracestate=carrier.get(TRACESTATE),
    )


def _answer(answer: Any) -> dict[str, Any]:
    raw = answer.physical_offsets
    offsets = [int.from_bytes(raw[i : i + 8], "big") for i in range(0, len(raw), 8)]
    ids = [encode_offset_message_id(answer.store_host, offset) for offset in offsets]
    return {
        "status": _STATUSES[answer.status],
        "queue_id": answer.queue_id,
        "queue_offset": answer.queue_offset,
        "message_count": answer.message_count,
        "next_offset": answer.queue_offset + answer.message_count,
        "physical_offset": answer.physical_offset,
        "end_physical_offset": answer.end_physical_offset,
        "store_timestamp_ms": answer.store_timestamp_ms,
        "physical_offsets": offsets,
        "offset_msg_ids": ids,
        "duplicate": answer.duplicate,
        "term": answer.term,
        "deliver_timestamp_ms": answer.deliver_timestamp_ms or None,
    }
