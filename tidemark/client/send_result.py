"""SendResult: where a batch lies, as the writer acknowledged it."""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from typing import NamedTuple

from tidemark.client.message_queue import MessageQueue
from tidemark.format.message_id import encode_offset_message_id
from tidemark.v1 import commit_log_pb2


class SendStatus(enum.Enum):
    """RocketMQ's PutMessageStatus, as far as it is an answer and not an error."""

    PUT_OK = commit_log_pb2.PUT_STATUS_PUT_OK
    FLUSH_DISK_TIMEOUT = commit_log_pb2.PUT_STATUS_FLUSH_DISK_TIMEOUT
    """Stored, but the flush is not confirmed yet: a power cut may still take it. Send it again with the same request id
    to be told once it is."""


_RAW = ("store_host", "raw_physical_offsets", "message_ids")  # too long to look at


class SendResult(NamedTuple):
    """One acknowledged batch; a single message is a batch of one.

    writer               address of the writer that has it
    queue_offset         of the first message; the others follow densely
    physical_offset      byte position of the first record; end_physical_offset: behind the last, exclusive
    store_host           address and port that offset message ids tell, as bytes
    raw_physical_offsets of each record, 8 bytes big-endian
    request_id           what makes a repeat harmless; the first message's UNIQ_KEY unless it brought its own
    duplicate            an earlier send of the same batch had been stored; these are its offsets
    term                 the writer's term
    deliver_timestamp_ms of a delayed message, when it comes to its topic: until then it lies at these offsets of
                         SCHEDULE_TOPIC_XXXX; 0: it is there already
    message_ids          the UNIQ_KEY of each message, which consumers see as its `message_id`. Empty for the packed
                         batches of `send_packed_async` and `send_table`
    """

    topic: str
    queue_id: int
    queue_offset: int
    count: int  # type: ignore[assignment]  # not tuple's method: fields are read by name
    physical_offset: int
    end_physical_offset: int
    store_timestamp_ms: int
    status: SendStatus
    duplicate: bool
    term: int
    request_id: str
    writer: str
    store_host: bytes
    raw_physical_offsets: bytes
    deliver_timestamp_ms: int = 0
    message_ids: Sequence[str] = ()

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self._asdict().items() if name not in _RAW)
        return f"SendResult({', '.join(shown)})"

    @property
    def queue(self) -> MessageQueue:
        """The queue it lies in."""
        return MessageQueue(self.topic, self.writer, self.queue_id)

    @property
    def physical_offsets(self) -> list[int]:
        """Of each record, in order. On a BatchCQ topic a batch is one record."""
        return list(struct.unpack(f">{len(self.raw_physical_offsets) // 8}q", self.raw_physical_offsets))

    @property
    def offset_message_ids(self) -> list[str]:
        """The id of each record: 32 hex digits (56 for an IPv6 store)."""
        return [encode_offset_message_id(self.store_host, at) for at in self.physical_offsets]

    @classmethod
    def of(
        cls,
        request: commit_log_pb2.AppendBatchRequest,
        response: commit_log_pb2.AppendBatchResponse,
        *,
        writer: str,
        message_ids: Sequence[str] = (),
    ) -> SendResult:
        """The writer's answer to *request*, typed."""
        return cls(
            topic=request.topic,
            queue_id=response.queue_id,
            queue_offset=response.queue_offset,
            count=response.message_count,
            physical_offset=response.physical_offset,
            end_physical_offset=response.end_physical_offset,
            store_timestamp_ms=response.store_timestamp_ms,
            status=SendStatus(response.status),
            duplicate=response.duplicate,
            term=response.term,
            request_id=request.request_id,
            writer=writer,
            store_host=response.store_host,
            raw_physical_offsets=response.physical_offsets,
            deliver_timestamp_ms=response.deliver_timestamp_ms,
            message_ids=message_ids,
        )
