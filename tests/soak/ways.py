"""Transports of a batch to the writer: gRPC with packed bytes or separate messages, or HTTP by the query service."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import grpc
import httpx

from tests.soak.messages import Named
from tidemark.client import Message
from tidemark.client.errors.grpc_errors import error_of_rpc
from tidemark.client.wire.channel import open_channel
from tidemark.errors import StoreError, UnavailableError
from tidemark.format.elements import encode_elements
from tidemark.status import BY_REASON
from tidemark.v1 import commit_log_pb2 as pb
from tidemark.v1.commit_log_pb2_grpc import CommitLogServiceStub


class Batch(NamedTuple):
    """A batch with its destination."""

    topic: str
    queue_id: int
    messages: Sequence[Named]
    request_id: str
    expected_next_offset: int | None = None


class Place(NamedTuple):
    """The place of a batch, from the writer's answer."""

    queue_offset: int
    physical_offsets: tuple[int, ...]
    end_physical_offset: int
    store_ms: int
    duplicate: bool
    term: int


class Way(Protocol):
    """A transport of batches."""

    def append(self, batch: Batch, timeout_s: float) -> Place | None:
        """Return its place; None for "stored, but not acknowledged yet". Raises a StoreError."""

    def close(self) -> None:
        """Close connections."""


class OverGrpc:
    """AppendBatch. packed: RocketMQ's wire batch; otherwise separate messages."""

    def __init__(self, address: str, *, packed: bool) -> None:
        self._channel = open_channel(address)
        self._stub = CommitLogServiceStub(self._channel)
        self._packed = packed

    def append(self, batch: Batch, timeout_s: float) -> Place | None:
        request = pb.AppendBatchRequest(
            topic=batch.topic,
            queue_id=batch.queue_id,
            request_id=batch.request_id,
            expected_next_offset=batch.expected_next_offset,
        )
        if self._packed:
            elements = [
                Message(batch.topic, message.body, keys=[message.name]).to_element() for message in batch.messages
            ]
            request.packed = encode_elements(elements)
        else:
            rows = [pb.Message(body=message.body, keys=[message.name]) for message in batch.messages]
            request.messages.CopyFrom(pb.MessageList(messages=rows))
        try:
            answer: pb.AppendBatchResponse = self._stub.AppendBatch(request, timeout=timeout_s)
        except grpc.RpcError as error:
            raise error_of_rpc(error) from error
        if answer.status != pb.PUT_STATUS_PUT_OK:
            return None
        assert answer.queue_id == batch.queue_id and answer.message_count == len(batch.messages)
        raw = answer.physical_offsets
        return Place(
            answer.queue_offset,
            tuple(int.from_bytes(raw[i : i + 8], "big") for i in range(0, len(raw), 8)),
            answer.end_physical_offset,
            answer.store_timestamp_ms,
            answer.duplicate,
            answer.term,
        )

    def close(self) -> None:
        self._channel.close()


class OverHttp:
    """POST to the query service, which forwards it."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=url)

    def append(self, batch: Batch, timeout_s: float) -> Place | None:
        rows = [
            {"body": binascii.b2a_base64(body, newline=False).decode(), "body_encoding": "base64", "keys": [name]}
            for name, body in batch.messages
        ]
        try:
            response = self._http.post(
                f"/v1/topics/{batch.topic}/messages",
                json={"messages": rows, "queue_id": batch.queue_id},
                headers={"Idempotency-Key": batch.request_id},
                timeout=timeout_s,
            )
        except httpx.TransportError as error:
            raise UnavailableError(repr(error)) from error
        answer = response.json()
        if response.is_error:
            raise BY_REASON.get(answer["reason"], StoreError)(answer["detail"])
        if response.status_code != httpx.codes.CREATED:
            return None
        assert answer["queue_id"] == batch.queue_id and answer["message_count"] == len(batch.messages)
        return Place(
            answer["queue_offset"],
            tuple(answer["physical_offsets"]),
            answer["end_physical_offset"],
            answer["store_timestamp_ms"],
            answer["duplicate"],
            answer["term"],
        )

    def close(self) -> None:
        self._http.close()
