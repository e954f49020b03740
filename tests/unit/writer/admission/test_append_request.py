"""Recognition of the form of a received batch."""

from __future__ import annotations

from services.writer.admission.append_request import Received
from tidemark.v1.commit_log_pb2 import AppendBatchRequest, Message, MessageList


def test_a_wire_batch_counts_its_bytes() -> None:
    """An empty wire batch is refused because it is empty, not because it is missing."""
    for packed in (b"elements", b""):
        request = AppendBatchRequest(topic="orders", packed=packed)
        assert Received.of(request) == Received(request, packed, len(packed))


def test_unpacked_messages_count_their_serialised_size() -> None:
    spelled = AppendBatchRequest(topic="orders", messages=MessageList(messages=[Message(body=b"x" * 100)]))
    nothing = AppendBatchRequest(topic="orders")
    for request in (spelled, nothing):
        assert Received.of(request) == Received(request, None, len(request.SerializeToString()))
