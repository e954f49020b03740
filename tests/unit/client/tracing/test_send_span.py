from __future__ import annotations

from concurrent.futures import Future

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

from tests.unit.client.tracing.test_spans import Program, program, traceparent_of
from tidemark.client import Message, SendResult, SendStatus
from tidemark.client.tracing import send_span
from tidemark.client.tracing.send_span import SendSpan
from tidemark.errors import DiskFullError

__all__ = ["program"]


def begin() -> SendSpan:
    span = SendSpan.begin("orders", 2)
    assert span is not None
    return span


def result(writer: str) -> SendResult:
    return SendResult("orders", 3, 40, 2, 0, 0, 0, SendStatus.PUT_OK, False, 1, "r", writer, b"", b"")


def test_a_send_that_is_not_sampled_has_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_span, "_tracer", TracerProvider(ALWAYS_OFF).get_tracer("program"))
    assert SendSpan.begin("orders", 1) is None


def test_the_span_ends_with_the_answer_and_names_the_offset(program: Program) -> None:
    future: Future[SendResult] = Future()
    assert begin().around(lambda: future) is future
    assert program.spans == []
    future.set_result(result("10.0.0.1:8081"))
    (span,) = program.spans
    assert span.attributes is not None
    assert span.attributes["messaging.batch.message_count"] == 2
    assert (span.attributes["server.address"], span.attributes["server.port"]) == ("10.0.0.1", 8081)
    assert (span.attributes["messaging.destination.partition.id"], span.attributes["tidemark.queue_offset"]) == (
        "3",
        40,
    )


def test_a_failed_answer_is_the_spans_error(program: Program) -> None:
    future: Future[SendResult] = Future()
    begin().around(lambda: future)
    future.set_exception(DiskFullError("the disk is full"))
    (span,) = program.spans
    assert span.attributes is not None
    assert (span.status.status_code, span.attributes["error.type"]) == (StatusCode.ERROR, "DISK_FULL")


def test_a_send_that_raises_ends_the_span_and_raises(program: Program) -> None:
    def send() -> Future[SendResult]:
        raise DiskFullError("the disk is full")

    with pytest.raises(DiskFullError):
        begin().around(send)
    assert [span.status.status_code for span in program.spans] == [StatusCode.ERROR]


def test_messages_carry_the_spans_context_instead_of_an_older_one(program: Program) -> None:
    span = begin()
    (marked,) = span.mark([Message("orders", b"x", tag="red", properties={"traceparent": "old", "a": "b"})])
    future: Future[SendResult] = Future()
    span.around(lambda: future)
    future.set_result(result("10.0.0.1:8081"))
    assert marked.properties == {"a": "b", "traceparent": traceparent_of(program.spans[0])}
    assert (marked.body, marked.tag) == (b"x", "red")
