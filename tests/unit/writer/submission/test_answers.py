from __future__ import annotations

from typing import Any

import pytest
from google.rpc import error_details_pb2, status_pb2

from services.writer.batch.batch import Appended, Batch, Delay, PutStatus
from services.writer.submission.answers import response_of, rpc_status_of
from tests.builders import STORE_HOST, STORE_MS
from tests.unit.writer.batches import batch_of
from tidemark.errors import DiskFullError, InFlightLimitError, QueueIllegalError
from tidemark.v1.commit_log_pb2 import (
    PUT_STATUS_FLUSH_DISK_TIMEOUT,
    PUT_STATUS_PUT_OK,
    AppendBatchResponse,
)

INVALID_ARGUMENT, RESOURCE_EXHAUSTED, INTERNAL = 3, 8, 13  # google.rpc.Code


def appended(**facts: Any) -> Batch:
    batch = batch_of(b"a", b"b", **facts)
    batch.appended = Appended(batch.key.queue_id, 7, 2, 100, 300, STORE_MS, bytes(16))
    return batch


def response(batch: Batch) -> AppendBatchResponse:
    return response_of(batch, store_host=STORE_HOST, term=5)


def detail(status: status_pb2.Status, kind: type[Any]) -> Any:
    """Return the detail of this *kind*."""
    found = kind()
    assert any(packed.Unpack(found) for packed in status.details), f"no {kind.__name__}"
    return found


def test_a_response_has_the_offsets_of_the_batch() -> None:
    answer = response(appended(queue_id=3))
    assert (answer.status, answer.term, answer.store_host) == (PUT_STATUS_PUT_OK, 5, STORE_HOST)
    assert (answer.queue_id, answer.queue_offset, answer.message_count) == (3, 7, 2)
    assert (answer.physical_offset, answer.end_physical_offset, answer.physical_offsets) == (100, 300, bytes(16))
    assert (answer.stored_topic, answer.deliver_timestamp_ms) == ("", 0)


def test_a_late_flush_is_answered_with_flush_disk_timeout() -> None:
    batch = appended()
    batch.status = PutStatus.FLUSH_DISK_TIMEOUT
    assert response(batch).status == PUT_STATUS_FLUSH_DISK_TIMEOUT


def test_a_delayed_message_is_answered_with_the_queue_and_time_of_its_delivery() -> None:
    """Level 3 is ten seconds after the message was stored."""
    answer = response(appended(topic="SCHEDULE_TOPIC_XXXX", queue_id=2, delay=Delay(3, "orders", 1)))
    assert (answer.queue_id, answer.deliver_timestamp_ms) == (1, STORE_MS + 10_000)


def test_a_dead_letter_is_answered_with_its_stored_topic() -> None:
    assert response(appended(topic="%DLQ%billing", is_redirected=True)).stored_topic == "%DLQ%billing"


def test_a_refusal_has_its_reason_and_its_facts() -> None:
    status = rpc_status_of(QueueIllegalError("no such queue", queue_id=9, queues=4))
    info = detail(status, error_details_pb2.ErrorInfo)
    assert (status.code, info.reason, info.domain) == (INVALID_ARGUMENT, "QUEUE_ID_ILLEGAL", "tidemark")
    assert dict(info.metadata) == {"queue_id": "9", "queues": "4"}
    assert "no such queue" in status.message


@pytest.mark.parametrize("error", [InFlightLimitError("full", retry_after_ms=50), DiskFullError("full")])
def test_a_resource_exhausted_error_has_a_retry_delay(error: Exception) -> None:
    status = rpc_status_of(error)
    delay = detail(status, error_details_pb2.RetryInfo).retry_delay.ToMilliseconds()
    assert status.code == RESOURCE_EXHAUSTED
    assert delay == 50 if isinstance(error, InFlightLimitError) else delay > 0


def test_an_internal_error_reveals_no_details() -> None:
    status = rpc_status_of(RuntimeError("a secret path"))
    assert (status.code, status.message) == (INTERNAL, "")
    assert b"secret" not in status.SerializeToString()
