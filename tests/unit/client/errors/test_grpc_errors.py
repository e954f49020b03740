from __future__ import annotations

from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from tests.unit.client.fake_writer import refusal
from tidemark.client.errors.grpc_errors import (
    error_of_rpc,
    error_of_status,
    is_answer,
    is_definite,
    is_retryable,
    may_resume,
    retry_delay_s,
)
from tidemark.errors import (
    DeadlineExceededError,
    DiskFullError,
    FlushFailedError,
    NextOffsetMismatchError,
    StoreError,
    TopicNotFoundError,
    WriterUnreachableError,
)

Code = grpc.StatusCode


class Failure(grpc.RpcError):
    """A failed call, with a rich status where the writer sent one."""

    def __init__(self, code: grpc.StatusCode, status: status_pb2.Status | None = None) -> None:
        self._code = code
        self._status = status

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return "refused: TOPIC_NOT_FOUND" if self._status is not None else "no details"

    def trailing_metadata(self) -> tuple[Any, ...]:
        if self._status is None:
            return ()
        self._status.code = self._code.value[0]
        self._status.message = self.details()
        return (("grpc-status-details-bin", self._status.SerializeToString()),)


def test_a_refusal_is_the_exception_of_its_reason_with_its_facts() -> None:
    error = error_of_status(refusal("NEXT_OFFSET_MISMATCH", {"expected": "7", "actual": "-1", "topic": "12"}))
    assert type(error) is NextOffsetMismatchError
    assert error.facts == {"expected": 7, "actual": -1, "topic": "12"}, "a topic of digits stays text"


def test_a_reason_of_a_newer_writer_is_a_plain_error_with_its_text() -> None:
    error = error_of_status(refusal("INVENTED_LATER"))
    assert (type(error), error.message) == (StoreError, "refused: INVENTED_LATER")


def test_the_request_id_is_a_fact_of_the_error() -> None:
    status = refusal("DISK_FULL")
    packed = any_pb2.Any()
    packed.Pack(error_details_pb2.RequestInfo(request_id="0042"))
    status.details.append(packed)
    assert error_of_status(status).facts["request_id"] == "0042"


def test_a_failed_call_with_a_reason_is_the_exception_of_that_reason() -> None:
    error = error_of_rpc(Failure(Code.NOT_FOUND, refusal("TOPIC_NOT_FOUND")))
    assert type(error) is TopicNotFoundError


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (Code.UNAVAILABLE, WriterUnreachableError),
        (Code.CANCELLED, WriterUnreachableError),
        (Code.DEADLINE_EXCEEDED, DeadlineExceededError),
        (Code.UNKNOWN, StoreError),
    ],
)
def test_a_failed_call_without_a_reason_is_the_exception_of_its_code(
    code: grpc.StatusCode, error: type[StoreError]
) -> None:
    assert type(error_of_rpc(Failure(code))) is error
    assert is_answer(Failure(code)) is (code is Code.UNKNOWN)


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (Failure(Code.UNAVAILABLE), True),
        (Failure(Code.PERMISSION_DENIED), False),
        (Failure(Code.UNAUTHENTICATED), False),
        (Failure(Code.UNIMPLEMENTED), False),
        (Failure(Code.RESOURCE_EXHAUSTED), False),
        (Failure(Code.RESOURCE_EXHAUSTED, refusal("IN_FLIGHT_LIMIT")), True),
    ],
)
def test_a_stream_resumes_unless_the_failure_is_permanent(failure: Failure, expected: bool) -> None:
    """RESOURCE_EXHAUSTED without a reason is the transport's: the message is too large for it."""
    assert may_resume(failure) is expected


@pytest.mark.parametrize(
    ("error", "retryable", "definite"),
    [
        (TopicNotFoundError("x"), False, True),
        (DiskFullError("x"), True, True),
        (FlushFailedError("x"), True, False),
    ],
)
def test_a_failed_flush_is_retryable_and_its_outcome_is_unknown(
    error: StoreError, retryable: bool, definite: bool
) -> None:
    """The batch may be on disk; the writer that recovers answers a repeat with the truth."""
    assert (is_retryable(error), is_definite(error)) == (retryable, definite)


@pytest.mark.parametrize(("milliseconds", "seconds"), [(None, None), (0, 0.0), (1500, 1.5)])
def test_the_retry_delay_of_the_writer_is_returned_in_seconds(milliseconds: int | None, seconds: float | None) -> None:
    assert retry_delay_s(refusal("DISK_FULL", retry_after_ms=milliseconds)) == seconds
