"""AppendSpans: a trace span for each batch, from its arrival to its answer, with child spans for write and flush.

There is one span per batch, not per call, because a stream may live as long as its client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from structlog.contextvars import bind_contextvars

from tidemark.errors import StoreError
from tidemark.format.properties import TRACEPARENT, TRACESTATE
from tidemark.status import status_of
from tidemark.tracing import attributes
from tidemark.tracing.propagation import carrier_in, context_of, trace_id_of
from tidemark.tracing.request_id import current_request_id
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

from ..batch.batch import Batch

Metadata = Iterable[tuple[str, str | bytes]]


class AppendSpans:
    """The factory of append spans. It exists only if tracing is on."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def begin(self, request: AppendBatchRequest, metadata: Metadata | None) -> AppendSpan | None:
        """Start the span of a batch that has arrived; return None if it is not sampled.

        metadata: of the call, if the call contains only this batch.
        """
        carrier = {TRACEPARENT: request.traceparent, TRACESTATE: request.tracestate}
        if not request.traceparent and metadata:
            carrier = carrier_in(metadata)
        span = self._tracer.start_span(
            f"append {request.topic}",
            context_of(carrier),
            SpanKind.SERVER,
            {
                attributes.SYSTEM: attributes.TIDEMARK,
                attributes.DESTINATION: request.topic,
                attributes.OPERATION: "append",
                attributes.REQUEST_ID: current_request_id() or "",
            },
        )
        if not span.is_recording():
            return None
        if metadata is not None:
            bind_contextvars(trace_id=trace_id_of(span))
        return AppendSpan(self._tracer, span)


class AppendSpan:
    """The span of one batch. It ends once, with the answer or with an error."""

    def __init__(self, tracer: Tracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._began_ns = time.time_ns()

    def ending(self, answer: Callable[[Batch], None]) -> Callable[[Batch], None]:
        """Return a function that ends the span and then calls *answer*."""

        def end_and_answer(batch: Batch) -> None:
            self._end(batch)
            answer(batch)

        return end_and_answer

    def refuse(self, error: StoreError) -> None:
        """End the span with *error*, because the batch was rejected or could not be stored."""
        self._span.set_attribute(attributes.ERROR_TYPE, status_of(error).reason)
        self._span.set_status(Status(StatusCode.ERROR, error.message))
        self._span.end()

    def _end(self, batch: Batch) -> None:
        if batch.error is not None:
            self.refuse(batch.error)
            return
        appended = batch.appended
        assert appended is not None, "answered without an error"
        self._part("append", self._began_ns, batch.written_ns)
        self._part("flush", batch.written_ns, time.time_ns())
        self._span.set_attributes(
            {
                attributes.PARTITION: str(appended.queue_id),
                attributes.MESSAGE_COUNT: appended.message_count,
                attributes.QUEUE_OFFSET: appended.queue_offset,
                attributes.PHYSICAL_OFFSET: appended.physical_offset,
                attributes.END_PHYSICAL_OFFSET: appended.end_offset,
                attributes.DUPLICATE: appended.duplicate,
            }
        )
        if batch.is_late:
            self._span.add_event(batch.status.name.lower())
        self._span.end()

    def _part(self, name: str, began_ns: int, ended_ns: int) -> None:
        part = self._tracer.start_span(name, trace.set_span_in_context(self._span), start_time=began_ns)
        part.end(ended_ns)
