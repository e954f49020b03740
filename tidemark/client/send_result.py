"""SendResult: the stored position of a batch, as the writer acknowledged it."""

from __future__ import annotations

import enum
import struct
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tidemark.client.message_queue import MessageQueue
from tidemark.format.message_id import encode_offset_message_id
from tidemark.v1 import commit_log_pb2


class Request(Protocol):
    """The parts of a request that its result repeats."""

    topic: str
    request_id: str


class SendStatus(enum.Enum):
    """The values of RocketMQ's PutMessageStatus that are answers and not errors."""

    PUT_OK = commit_log_pb2.PUT_STATUS_PUT_OK
    FLUSH_DISK_TIMEOUT = commit_log_pb2.PUT_STATUS_FLUSH_DISK_TIMEOUT
    """Stored, but the flush is not confirmed yet, so a power failure may lose the batch. Send it again with the same
    request id to get PUT_OK once it is flushed."""
    FLUSH_SLAVE_TIMEOUT = commit_log_pb2.PUT_STATUS_FLUSH_SLAVE_TIMEOUT
    """Stored by the writer, but not confirmed by its replicas yet. Send it again with the same request id to get PUT_OK
    once they have it."""
    SLAVE_NOT_AVAILABLE = commit_log_pb2.PUT_STATUS_SLAVE_NOT_AVAILABLE
    """Committed, but on the writer's disk alone: no replica is in sync, and `min_in_sync` is 1."""

    @property
    def is_confirmed(self) -> bool:
        """True if the message is committed; otherwise it is stored, and may still be lost."""
        return self in (SendStatus.PUT_OK, SendStatus.SLAVE_NOT_AVAILABLE)


_STATUSES = {status.value: status for status in SendStatus}  # faster than a call of SendStatus
_RAW = ("store_host", "raw_physical_offsets", "message_ids")  # too long for repr


class SendResult(NamedTuple):
    """One acknowledged batch; a single message is a batch of one.

    writer               address of the writer that stored it
    queue_offset         queue offset of the first message; the others follow without gaps
    physical_offset      byte position of the first record
    end_physical_offset  byte position after the last record (exclusive)
    store_host           address and port in offset message ids, as bytes
    raw_physical_offsets physical offset of each record, 8 bytes big-endian
    request_id           id that makes a repeat harmless; the first message's UNIQ_KEY unless the send gave one
    duplicate            True if an earlier send had already stored the batch; the offsets are those of that send
    term                 the writer's term
    deliver_timestamp_ms for a delayed message, the time of its delivery to its topic: until then, the offsets are
                         those in SCHEDULE_TOPIC_XXXX; 0 for a message that is already in its topic
    message_ids          the UNIQ_KEY of each message, which consumers see as its `message_id`; empty for the packed
                         batches of `send_packed_async` and `send_table`
    """

    topic: str
    queue_id: int
    queue_offset: int
    count: int  # type: ignore[assignment]  # replaces tuple.count: fields are read by name
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
        """Return the queue that stores the batch."""
        return MessageQueue(self.topic, self.writer, self.queue_id)

    @property
    def physical_offsets(self) -> list[int]:
        """Return the physical offset of each record, in order. On a BatchCQ topic a batch is one record."""
        return list(struct.unpack(f">{len(self.raw_physical_offsets) // 8}q", self.raw_physical_offsets))

    @property
    def offset_message_ids(self) -> list[str]:
        """Return the offset message id of each record: 32 hex digits (56 for an IPv6 store)."""
        return [encode_offset_message_id(self.store_host, at) for at in self.physical_offsets]

    def of_one(self, number: int, *, physical_offset: bytes, message_id: str) -> SendResult:
        """Return the result of message *number* of this batch.

        physical_offset: of its record, 8 bytes big-endian
        """
        topic, queue_id, first, _, _, end, stored_ms, status, duplicate, term, _, writer, host, _, due_ms, _ = self
        place = int.from_bytes(physical_offset, "big")
        head = (topic, queue_id, first + number, 1, place, end, stored_ms, status, duplicate, term)
        fields = (*head, message_id, writer, host, physical_offset, due_ms, (message_id,))
        return tuple.__new__(SendResult, fields)

    @classmethod
    def of(
        cls,
        request: Request,
        response: commit_log_pb2.AppendBatchResponse,
        *,
        writer: str,
        message_ids: Sequence[str] = (),
    ) -> SendResult:
        """Return the SendResult for the writer's *response* to *request*."""
        fields = (
            request.topic,
            response.queue_id,
            response.queue_offset,
            response.message_count,
            response.physical_offset,
            response.end_physical_offset,
            response.store_timestamp_ms,
            _STATUSES.get(response.status) or SendStatus(response.status),
            response.duplicate,
            response.term,
            request.request_id,
            writer,
            response.store_host,
            response.physical_offsets,
            response.deliver_timestamp_ms,
            message_ids,
        )
        return tuple.__new__(cls, fields)  # faster than a call of the class with its keywords
