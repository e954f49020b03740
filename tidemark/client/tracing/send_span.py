"""SendSpan: the span of one send; the messages carry its context to their consumers.

`traceparent` becomes a property of the message, as OpenTelemetry's instrumentations put it into Kafka's headers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Self

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, get_tracer

from tidemark.client.errors.address_faults import members_of
from tidemark.client.message import Message
from tidemark.client.send_result import SendResult
from tidemark.status import status_of
from tidemark.tracing import attributes
from tidemark.tracing.propagation import carrier_of

_tracer = get_tracer("tidemark.client")


class SendSpan:
    """A span that ends with the send's answer. carrier: the context to put into the messages or the request."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.carrier = carrier_of(span)

    @classmethod
    def begin(cls, topic: str, count: int) -> Self | None:
        """Start a span; return None if it is not sampled or the program has no tracer provider."""
        span = _tracer.start_span(
            f"send {topic}",
            kind=SpanKind.PRODUCER,
            attributes={
                attributes.SYSTEM: attributes.TIDEMARK,
                attributes.DESTINATION: topic,
                attributes.OPERATION: "send",
                attributes.OPERATION_TYPE: "send",
                attributes.MESSAGE_COUNT: count,
            },
        )
        return cls(span) if span.is_recording() else None

    def mark(self, messages: Sequence[Message]) -> list[Message]:
        """Return *messages* with this context as properties, which replace an older context."""
        return [replace(message, properties={**message.properties, **self.carrier}) for message in messages]

    def around(self, send: Callable[[], Future[SendResult]]) -> Future[SendResult]:
        """Call *send* and return its future; end the span when it completes."""
        try:
            future = send()
        except BaseException as error:
            self._fail(error)
            raise
        future.add_done_callback(self._end)
        return future

    def _end(self, done: Future[SendResult]) -> None:
        error = done.exception()
        if error is not None:
            self._fail(error)
            return
        result = done.result()
        host, _, port = members_of(result.writer)[0].rpartition(":")
        self._span.set_attributes(
            {
                attributes.PARTITION: str(result.queue_id),
                attributes.QUEUE_OFFSET: result.queue_offset,
                attributes.SERVER_ADDRESS: host,
                attributes.SERVER_PORT: int(port) if port.isdecimal() else 0,
            }
        )
        self._span.end()

    def _fail(self, error: BaseException) -> None:
        self._span.set_attribute(attributes.ERROR_TYPE, status_of(error).reason)
        self._span.set_status(Status(StatusCode.ERROR, str(error)))
        self._span.end()
