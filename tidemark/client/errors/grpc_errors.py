"""Converts gRPC errors into the exceptions of `tidemark.errors`, by their stable reason."""

from __future__ import annotations

from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from tidemark.errors import DeadlineExceededError, Fact, StoreError, WriterUnreachableError
from tidemark.status import BY_REASON, DOMAIN, status_of

RETRYABLE_CODES = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED"})
RETRYABLE_REASONS = frozenset(  # the writer has ended; the next one answers a repeat with the real outcome
    {"FLUSH_FAILED", "STALE_EPOCH"}
)
FINAL_CODES = frozenset(  # codes with which a new stream would fail, too
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
_NO_ANSWER = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED})
_TEXT_FACTS = frozenset({"topic", "path", "name", "key", "request_id", "reason"})


def error_of_status(status: status_pb2.Status) -> StoreError:
    """Return the exception for *status*; a plain StoreError for a reason that this client does not know."""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            leaf = BY_REASON.get(info.reason, StoreError)
            facts = {name: _fact(name, text) for name, text in info.metadata.items() if name != "message"}
            return leaf(status.message, **{**_request_of(status), **facts})
    return StoreError(status.message or f"gRPC code {status.code}")


def _request_of(status: status_pb2.Status) -> dict[str, Fact]:
    """Return the refused call's id in the writer's log, as a fact."""
    request = error_details_pb2.RequestInfo()
    return next(({"request_id": request.request_id} for detail in status.details if detail.Unpack(request)), {})


def error_of_rpc(error: grpc.RpcError) -> StoreError:
    """Return the exception for a failed call of grpc or grpc.aio: the writer's detailed one, or the transport's."""
    call = _call(error)
    status = rpc_status.from_call(call)
    if status is not None and status.details:
        return error_of_status(status)
    text = f"{call.code().name}: {call.details()}"
    leaves = {
        grpc.StatusCode.UNAVAILABLE: WriterUnreachableError,
        grpc.StatusCode.CANCELLED: WriterUnreachableError,  # by a stopping writer: own cancellations do not raise
        grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    }
    return leaves.get(call.code(), StoreError)(text)


def is_answer(error: grpc.RpcError) -> bool:
    """Return True if a server answered with this error, False if the transport reached no server.

    gRPC may report INTERNAL for a connection that ends while it begins. A writer gives details with that code.
    """
    call = _call(error)
    if call.code() is grpc.StatusCode.INTERNAL:
        return rpc_status.from_call(call) is not None
    return call.code() not in _NO_ANSWER


def may_resume(error: grpc.RpcError) -> bool:
    """Return True if a new stream to the same writer may carry the broken stream's batches."""
    call = _call(error)
    too_large = call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and rpc_status.from_call(call) is None
    return not too_large and call.code() not in FINAL_CODES


def is_retryable(error: StoreError) -> bool:
    """Return True if the same writer may accept the same batch later."""
    status = status_of(error)
    return status.grpc_code in RETRYABLE_CODES or status.reason in RETRYABLE_REASONS


def is_definite(error: StoreError) -> bool:
    """Return True if a writer that refuses with *error* has certainly not stored the batch."""
    return status_of(error).reason not in RETRYABLE_REASONS


def retry_delay_s(status: status_pb2.Status) -> float | None:
    """Return the seconds after which the writer asks for a retry; None if it does not say."""
    for detail in status.details:
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            return float(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9)
    return None


def _call(error: grpc.RpcError) -> Any:
    """Return *error* typed as a call, with code(), details() and trailing_metadata().

    Errors of grpc.aio have these methods without being a grpc.Call.
    """
    return error


def _fact(name: str, text: str) -> Fact:
    return int(text) if name not in _TEXT_FACTS and text.removeprefix("-").isdecimal() else text
