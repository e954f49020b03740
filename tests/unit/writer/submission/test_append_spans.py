from __future__ import annotations

import contextvars
import time
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, format_span_id, format_trace_id
from structlog.contextvars import get_contextvars

from services.writer.batch.batch import Appended, Batch, PutStatus
from services.writer.submission.append_spans import AppendSpan, AppendSpans
from tests.builders import STORE_MS
from tests.unit.writer.batches import batch_of
from tidemark.errors import DiskFullError, StoreError
from tidemark.tracing.request_id import begin_request
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

TRACE, OTHER_TRACE, SPAN = "ab" * 16, "12" * 16, "cd" * 8
SAMPLED, OTHER, NOT_SAMPLED = f"00-{TRACE}-{SPAN}-01", f"00-{OTHER_TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-00"


class Traced:
    """Append spans, and the spans that they ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.spans = AppendSpans(provider.get_tracer("test"))

    def begin(self, traceparent: str = "", metadata: Any = None) -> AppendSpan:
        request = AppendBatchRequest(topic="orders", traceparent=traceparent)
        # in a context of its own, as each call: log lines of later tests must not have the trace
        span = contextvars.copy_context().run(self.spans.begin, request, metadata)
        assert span is not None
        return span

    def ended(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def traced() -> Traced:
    return Traced()


def answered(*, late: bool = False, error: StoreError | None = None) -> Batch:
    """Return a batch of two messages that was written just now."""
    batch = batch_of(b"a", b"b", queue_id=1)
    batch.appended = Appended(1, 7, 2, 100, 300, STORE_MS, bytes(16))
    batch.written_ns = time.time_ns()
    batch.error = error
    if late:
        batch.status = PutStatus.FLUSH_DISK_TIMEOUT
    return batch


def finish(span: AppendSpan, batch: Batch) -> None:
    span.ending(lambda _: None)(batch)


def parent_of(span: ReadableSpan) -> tuple[str, str]:
    assert span.parent is not None
    return format_trace_id(span.parent.trace_id), format_span_id(span.parent.span_id)


def test_appended_batch_is_a_server_span_with_its_place(traced: Traced) -> None:
    finish(traced.begin(SAMPLED), answered())
    span = traced.ended()["append orders"]
    assert (span.kind, span.status.is_ok) == (SpanKind.SERVER, True)
    assert span.attributes is not None
    assert {
        "messaging.system": "tidemark",
        "messaging.destination.name": "orders",
        "messaging.operation.name": "append",
        "messaging.destination.partition.id": "1",
        "messaging.batch.message_count": 2,
        "tidemark.queue_offset": 7,
        "tidemark.physical_offset": 100,
        "tidemark.end_physical_offset": 300,
        "tidemark.duplicate": False,
    }.items() <= span.attributes.items()


def test_write_and_flush_are_child_spans_that_meet_at_the_time_of_the_write(traced: Traced) -> None:
    span = traced.begin(SAMPLED)
    batch = answered()
    finish(span, batch)
    spans = traced.ended()
    whole, write, flush = spans["append orders"], spans["append"], spans["flush"]
    assert (context := whole.get_span_context()) is not None
    assert parent_of(write) == parent_of(flush) == (TRACE, format_span_id(context.span_id))
    assert write.end_time == batch.written_ns == flush.start_time
    assert (write.start_time or 0) <= batch.written_ns <= (flush.end_time or 0)


@pytest.mark.parametrize(
    ("traceparent", "metadata", "trace"),
    [
        (SAMPLED, None, TRACE),
        (SAMPLED, (("traceparent", OTHER),), TRACE),
        ("", (("other", "x"), ("traceparent", OTHER)), OTHER_TRACE),
    ],
    ids=["of the batch", "of the batch before the call's", "of the call"],
)
def test_span_continues_the_trace_of_its_sender(traced: Traced, traceparent: str, metadata: Any, trace: str) -> None:
    finish(traced.begin(traceparent, metadata), answered())
    assert parent_of(traced.ended()["append orders"]) == (trace, SPAN)


def test_batch_that_its_sender_does_not_sample_has_no_span(traced: Traced) -> None:
    assert traced.spans.begin(AppendBatchRequest(topic="orders", traceparent=NOT_SAMPLED), None) is None
    assert traced.ended() == {}


def test_span_ends_before_its_batch_is_answered(traced: Traced) -> None:
    """A caller that has its answer can look up the span."""
    seen: list[tuple[Batch, bool]] = []
    batch = answered()
    traced.begin(SAMPLED).ending(lambda given: seen.append((given, "append orders" in traced.ended())))(batch)
    assert seen == [(batch, True)]


def test_late_flush_is_an_event_of_the_span_and_no_error(traced: Traced) -> None:
    finish(traced.begin(SAMPLED), answered(late=True))
    span = traced.ended()["append orders"]
    assert [event.name for event in span.events] == ["flush_disk_timeout"]
    assert span.status.is_ok


@pytest.mark.parametrize("is_refused", [True, False])
def test_span_of_a_failed_batch_has_its_reason_and_no_parts(traced: Traced, is_refused: bool) -> None:
    """A batch is refused before it is accepted, or fails afterwards."""
    error, span = DiskFullError("the disk is full"), traced.begin(SAMPLED)
    if is_refused:
        span.refuse(error)
    else:
        finish(span, answered(error=error))
    (ended,) = traced.ended().values()
    assert ended.attributes is not None
    assert (ended.status.is_ok, ended.status.description) == (False, "the disk is full")
    assert ended.attributes["error.type"] == "DISK_FULL"


def test_log_lines_of_a_call_with_one_batch_have_its_trace_and_its_request_id(traced: Traced) -> None:
    """A stream has many traces, so its lines have none."""

    def logged(metadata: Any) -> Any:
        begin_request("mine-7")
        span = traced.spans.begin(AppendBatchRequest(topic="orders", traceparent=SAMPLED), metadata)
        assert span is not None
        finish(span, answered())
        return get_contextvars().get("trace_id")

    assert contextvars.copy_context().run(logged, ()) == TRACE
    assert contextvars.copy_context().run(logged, None) is None
    assert (traced.ended()["append orders"].attributes or {})["tidemark.request_id"] == "mine-7"
