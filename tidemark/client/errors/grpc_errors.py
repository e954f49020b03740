"""Errors as they come over gRPC → the exceptions of `tidemark.errors`, by their stable reason."""

from __future__ import annotations

from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from tidemark.errors import DeadlineExceededError, Fact, StoreError, WriterUnreachableError
from tidemark.status import BY_REASON, DOMAIN, status_of

RETRYABLE_CODES = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED"})
RETRYABLE_REASONS = frozenset(
    {"FLUSH_FAILED"}
)  # the writer ends; the one that recovers answers a repeat with the truth
FINAL_CODES = frozenset(  # of a whole stream: another one would end the same way
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
    """The exception that *status* tells; a plain StoreError for a reason this client does not know."""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            leaf = BY_REASON.get(info.reason, StoreError)
            facts = {name: _fact(name, text) for name, text in info.metadata.items() if name != "message"}
            return leaf(status.message, **{**_request_of(status), **facts})
    return StoreError(status.message or f"gRPC code {status.code}")


def _request_of(status: status_pb2.Status) -> dict[str, Fact]:
    """The id of the refused call in the writer's log."""
    request = error_details_pb2.RequestInfo()
    return next(({"request_id": request.request_id} for detail in status.details if detail.Unpack(request)), {})


def error_of_rpc(error: grpc.RpcError) -> StoreError:
    """The exception of a failed call, of grpc or grpc.aio: rich where the writer answered, else the transport's."""
    call = _call(error)
    status = rpc_status.from_call(call)
    if status is not None and status.details:
        return error_of_status(status)
    text = f"{call.code().name}: {call.details()}"
    leaves = {
        grpc.StatusCode.UNAVAILABLE: WriterUnreachableError,
        grpc.StatusCode.CANCELLED: WriterUnreachableError,  # not by us, who raise nothing then: the writer stops
        grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    }
    return leaves.get(call.code(), StoreError)(text)


def is_answer(error: grpc.RpcError) -> bool:
    """Whether a server said this, and not the transport that it reached none."""
    return _call(error).code() not in _NO_ANSWER


def may_resume(error: grpc.RpcError) -> bool:
    """Whether another stream to the same writer may carry what the broken one did."""
    call = _call(error)
    too_large = call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and rpc_status.from_call(call) is None
    return not too_large and call.code() not in FINAL_CODES


def is_retryable(error: StoreError) -> bool:
    """Whether the same writer may take the same batch later."""
    status = status_of(error)
    return status.grpc_code in RETRYABLE_CODES or status.reason in RETRYABLE_REASONS


def is_definite(error: StoreError) -> bool:
    """Whether a writer that refuses so surely has not stored the batch."""
    return status_of(error).reason not in RETRYABLE_REASONS


def retry_delay_s(status: status_pb2.Status) -> float | None:
    """Seconds after which the writer asks to be tried again; None where it does not say."""
    for detail in status.details:
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            return float(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9)
    return None


def _call(error: grpc.RpcError) -> Any:
    """What a failed call is as well: code(), details(), trailing_metadata(). grpc.aio's errors have them without being
    a grpc.Call."""
    return error


def _fact(name: str, text: str) -> Fact:
    return int(text) if name not in _TEXT_FACTS and text.removeprefix("-").isdecimal() else text
