"""SendSpan: one send of a program that traces; its messages carry its context to whoever reads them.

As OpenTelemetry's instrumentations do with Kafka's record headers: `traceparent` becomes a property of the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Self

from opentelemetry.trace import Span, SpanKind, Status, StatusCode, get_tracer

from tidemark.client.message import Message
from tidemark.client.send_result import SendResult
from tidemark.status import status_of
from tidemark.tracing import attributes
from tidemark.tracing.propagation import carrier_of

_tracer = get_tracer("tidemark.client")


class SendSpan:
    """It ends with the send's answer. carrier: what its messages carry, or its request."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.carrier = carrier_of(span)

    @classmethod
    def begin(cls, topic: str, count: int) -> Self | None:
        """None where it is not sampled, or the program has no provider of traces."""
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
        """*messages* with the context among their properties, instead of an older one."""
        return [replace(message, properties={**message.properties, **self.carrier}) for message in messages]

    def around(self, send: Callable[[], Future[SendResult]]) -> Future[SendResult]:
        """The answer to come of *send*."""
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
        host, _, port = result.writer.rpartition(":")
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
