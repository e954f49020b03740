from __future__ import annotations

import struct

import pytest

from tidemark.client import MessageQueue, SendResult, SendStatus
from tidemark.v1 import commit_log_pb2

STORE_HOST = bytes([192, 168, 7, 65]) + struct.pack(">i", 10911)


def result(status: commit_log_pb2.PutStatus = commit_log_pb2.PUT_STATUS_PUT_OK) -> SendResult:
    """Return the result of a batch of two messages."""
    request = commit_log_pb2.AppendBatchRequest(topic="orders", request_id="r")
    response = commit_log_pb2.AppendBatchResponse(
        status=status,
        queue_id=3,
        queue_offset=40,
        message_count=2,
        physical_offset=256,
        end_physical_offset=768,
        store_host=STORE_HOST,
        physical_offsets=struct.pack(">qq", 256, 512),
        term=5,
    )
    return SendResult.of(request, response, writer="127.0.0.1:8081", message_ids=("r", "r#1"))


def test_an_acknowledgement_has_the_offsets_of_its_batch() -> None:
    sent = result()
    assert sent.queue == MessageQueue("orders", "127.0.0.1:8081", 3)
    assert (sent.queue_offset, sent.count, sent.physical_offset, sent.end_physical_offset) == (40, 2, 256, 768)
    assert (sent.request_id, sent.term, sent.status) == ("r", 5, SendStatus.PUT_OK)


def test_each_record_has_its_physical_offset_and_its_id() -> None:
    """RocketMQ's offset message id: address, port and physical offset as hexadecimal digits."""
    sent = result()
    assert sent.physical_offsets == [256, 512]
    assert sent.offset_message_ids == ["C0A8074100002A9F0000000000000100", "C0A8074100002A9F0000000000000200"]


def test_an_unconfirmed_flush_is_a_status_and_not_an_error() -> None:
    assert result(commit_log_pb2.PUT_STATUS_FLUSH_DISK_TIMEOUT).status is SendStatus.FLUSH_DISK_TIMEOUT


def test_an_answer_without_a_status_is_refused() -> None:
    with pytest.raises(ValueError, match="SendStatus"):
        result(commit_log_pb2.PUT_STATUS_UNSPECIFIED)


def test_the_repr_of_a_result_omits_per_message_fields() -> None:
    shown = repr(result())
    assert "queue_offset=40" in shown
    assert "raw_physical_offsets" not in shown
    assert "message_ids" not in shown


def test_the_result_of_one_message_differs_from_its_batch_in_its_place_and_id_only() -> None:
    batch = result()._replace(
        store_timestamp_ms=7, duplicate=True, deliver_timestamp_ms=9, status=SendStatus.FLUSH_DISK_TIMEOUT
    )
    place = struct.pack(">q", 512)
    assert batch.of_one(1, physical_offset=place, message_id="own") == batch._replace(
        queue_offset=41,
        count=1,
        physical_offset=512,
        raw_physical_offsets=place,
        request_id="own",
        message_ids=("own",),
    )
