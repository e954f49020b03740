"""What the client tells of itself to a program that traces. Without OpenTelemetry in the program nothing is done.

Whether it is there is asked of what the program has imported: the client does not need it, and imports it only then.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.client.received_message import ReceivedMessage
    from tidemark.client.tracing.send_span import SendSpan

_OPEN_TELEMETRY = "opentelemetry.trace"


def is_tracing() -> bool:
    """Whether spans could be anybody's."""
    return hasattr(sys.modules.get(_OPEN_TELEMETRY), "get_tracer")  # not yet while it is being imported


def begin_send(topic: str, count: int) -> SendSpan | None:
    """The span of a send of *count* messages; None where it is nobody's."""
    if not is_tracing():
        return None
    from tidemark.client.tracing.send_span import SendSpan

    return SendSpan.begin(topic, count)


def processing(message: ReceivedMessage, group: str | None = None) -> AbstractContextManager[object]:
    """While it lasts, a span for the handling of *message*, a child of the one that sent it; none without traces.

    `Consumer.consume` does so around its handler. For who polls:

        for message in consumer.poll():
            with processing(message, group="billing"):
                handle(message)
    """
    if not is_tracing():
        return contextlib.nullcontext()
    from tidemark.client.tracing.receive_spans import process_span

    return process_span(message, group)


def tell_received(messages: Sequence[ReceivedMessage], group: str | None, *, waited_s: float) -> None:
    """A span for a poll that gave out *messages*, with a link to each one's sender."""
    if messages and is_tracing():
        from tidemark.client.tracing.receive_spans import tell_poll

        tell_poll(messages, group, waited_s=waited_s)


def current_carrier() -> dict[str, str]:
    """`traceparent`, and `tracestate` where there is one, of the program's current span; {} without one."""
    if not is_tracing():
        return {}
    from opentelemetry.trace import get_current_span

    from tidemark.tracing.propagation import carrier_of

    span = get_current_span()
    return carrier_of(span) if span.is_recording() else {}
