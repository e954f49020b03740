"""Errors as they come over gRPC → the exceptions of `tidemark.errors`, by their stable reason."""

from __future__ import annotations

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from tidemark.errors import DeadlineExceededError, Fact, StoreError, WriterUnreachableError
from tidemark.status import DOMAIN, error_of, status_of

RETRYABLE_CODES = frozenset({"UNAVAILABLE", "RESOURCE_EXHAUSTED"})
RETRYABLE_REASONS = frozenset({"FLUSH_FAILED"})  # the writer ends; the one that recovers answers a repeat with the truth
FINAL_CODES = frozenset(  # of a whole stream: another one would end the same way
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
_TEXT_FACTS = frozenset({"topic", "path", "name", "key", "request_id", "reason"})


def error_of_status(status: status_pb2.Status) -> StoreError:
    """The exception that *status* tells; a plain StoreError for a reason this client does not know."""
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            return error_of(info.reason, status.message, **{name: _fact(name, text) for name, text in info.metadata.items()})
    return StoreError(status.message or f"gRPC code {status.code}")


def error_of_rpc(error: grpc.RpcError) -> StoreError:
    """The exception of a failed call: rich where the writer answered, else what the transport tells."""
    assert isinstance(error, grpc.Call)
    status = rpc_status.from_call(error)
    if status is not None and status.details:
        return error_of_status(status)
    text = f"{error.code().name}: {error.details()}"
    leaves = {
        grpc.StatusCode.UNAVAILABLE: WriterUnreachableError,
        grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
    }
    return leaves.get(error.code(), StoreError)(text)


def may_resume(error: grpc.RpcError) -> bool:
    """Whether another stream to the same writer may carry what the broken one did."""
    assert isinstance(error, grpc.Call)
    too_large = error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and rpc_status.from_call(error) is None
    return not too_large and error.code() not in FINAL_CODES


def is_retryable(error: StoreError) -> bool:
    """Whether the same writer may take the same batch later."""
    status = status_of(error)
    return status.grpc_code in RETRYABLE_CODES or status.reason in RETRYABLE_REASONS


def retry_delay_s(status: status_pb2.Status) -> float | None:
    """Seconds after which the writer asks to be tried again; None where it does not say."""
    for detail in status.details:
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(retry):
            return retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9
    return None


def _fact(name: str, text: str) -> Fact:
    return int(text) if name not in _TEXT_FACTS and text.removeprefix("-").isdecimal() else text
