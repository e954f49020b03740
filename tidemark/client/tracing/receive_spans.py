"""Consumer spans: one per poll, linked to the messages' sends, and one per processed message, a child of its send."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import islice

from opentelemetry.trace import Span, SpanKind, get_tracer
from opentelemetry.util.types import AttributeValue

from tidemark.client.received_message import ReceivedMessage
from tidemark.format.properties import TRACEPARENT
from tidemark.tracing import attributes
from tidemark.tracing.propagation import context_of, links_to

_MOST_LINKS = 128  # the SDK's default limit of links (OTEL_SPAN_LINK_COUNT_LIMIT)
_tracer = get_tracer("tidemark.client")


def record_poll(messages: Sequence[ReceivedMessage], group: str | None, *, waited_s: float) -> None:
    """Record the span of a poll that ends now; its name has the topic if all messages are of one topic."""
    topics = {message.topic for message in messages}
    topic = topics.pop() if len(topics) == 1 else ""
    carriers = (message.properties for message in messages if TRACEPARENT in message.properties)
    now_ns = time.time_ns()
    span = _tracer.start_span(
        f"poll {topic}".rstrip(),
        kind=SpanKind.CLIENT,
        attributes={
            **_about(topic, group),
            attributes.OPERATION: "poll",
            attributes.OPERATION_TYPE: "receive",
            attributes.MESSAGE_COUNT: len(messages),
        },
        links=links_to(islice(carriers, _MOST_LINKS)),
        start_time=now_ns - int(waited_s * 1e9),
    )
    span.end(now_ns)


def process_span(message: ReceivedMessage, group: str | None) -> AbstractContextManager[Span]:
    """Return the span for processing *message*, as a context manager that makes it current and records exceptions.

    It is a child of the sender's context; without one, of the current span.
    """
    return _tracer.start_as_current_span(
        f"process {message.topic}",
        context_of(message.properties) if TRACEPARENT in message.properties else None,
        SpanKind.CONSUMER,
        {
            **_about(message.topic, group),
            attributes.OPERATION: "process",
            attributes.OPERATION_TYPE: "process",
            attributes.PARTITION: str(message.queue_id),
            attributes.QUEUE_OFFSET: message.queue_offset,
            attributes.PHYSICAL_OFFSET: message.physical_offset,
            attributes.BODY_SIZE: len(message.body),
            **({} if message.message_id is None else {attributes.MESSAGE_ID: message.message_id}),
        },
    )


def _about(topic: str, group: str | None) -> dict[str, AttributeValue]:
    return {
        attributes.SYSTEM: attributes.TIDEMARK,
        **({attributes.DESTINATION: topic} if topic else {}),
        **({attributes.CONSUMER_GROUP: group} if group else {}),
    }
