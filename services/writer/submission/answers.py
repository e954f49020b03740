"""Builds responses: for an appended batch, and for an error, a google.rpc.Status with rich details."""

from __future__ import annotations

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from tidemark.errors import StoreError
from tidemark.status import DOMAIN, status_of
from tidemark.tracing.request_id import current_request_id
from tidemark.v1.commit_log_pb2 import AppendBatchResponse

from ..batch.batch import Batch
from ..batch.delayed_message import due_ms

_RETRY_AFTER_MS = 1_000  # for exhaustion without a retry time of its own, such as a full disk


def response_of(batch: Batch, *, store_host: bytes, term: int) -> AppendBatchResponse:
    """Return the response for a batch that was appended."""
    response = AppendBatchResponse()
    fill_response(response, batch, store_host=store_host, term=term)
    return response


def fill_response(response: AppendBatchResponse, batch: Batch, *, store_host: bytes, term: int) -> None:
    """Set the fields of *response*, which is empty, for a batch that was appended."""
    appended = batch.appended
    assert appended is not None, "the batch was not appended"
    response.status = batch.status.value  # type: ignore[assignment]  # the same numbers
    response.queue_id = appended.queue_id
    response.queue_offset = appended.queue_offset
    response.message_count = appended.message_count
    response.physical_offset = appended.physical_offset
    response.end_physical_offset = appended.end_offset
    response.store_timestamp_ms = appended.store_timestamp
    response.store_host = store_host
    response.physical_offsets = appended.physical_offsets
    response.duplicate = appended.duplicate
    response.term = term
    if batch.is_redirected:
        response.stored_topic = batch.key.topic
    if batch.delay is not None:
        response.queue_id = batch.delay.queue_id
        response.deliver_timestamp_ms = due_ms(batch.delay, appended.store_timestamp)


def code_of(error: BaseException) -> grpc.StatusCode:
    """Return the gRPC code of *error*, from the table in `tidemark.status`."""
    code: grpc.StatusCode = getattr(grpc.StatusCode, status_of(error).grpc_code)
    return code


def rpc_status_of(error: BaseException) -> status_pb2.Status:
    """Return the google.rpc.Status of *error*.

    Its details are ErrorInfo with reason and facts, RetryInfo for RESOURCE_EXHAUSTED and for errors with the fact
    retry_after_ms, and within a call RequestInfo.
    """
    code = code_of(error)
    facts = error.facts if isinstance(error, StoreError) else {}
    status = status_pb2.Status(code=code.value[0], message=str(error) if facts or isinstance(error, StoreError) else "")
    info = error_details_pb2.ErrorInfo(reason=status_of(error).reason, domain=DOMAIN)
    for name, value in facts.items():
        if value is not None:
            info.metadata[name] = str(value)
    status.details.add().Pack(info)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED or "retry_after_ms" in facts:
        retry_after_ms = int(facts.get("retry_after_ms") or _RETRY_AFTER_MS)
        delay = Duration()
        delay.FromMilliseconds(retry_after_ms)
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    request_id = current_request_id()
    if request_id is not None:
        status.details.add().Pack(error_details_pb2.RequestInfo(request_id=request_id))
    return status
