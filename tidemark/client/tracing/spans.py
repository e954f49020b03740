"""The client's spans, for programs that use OpenTelemetry; no effect in other programs.

The check looks at the modules that the program has imported: the client does not require OpenTelemetry.
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
    """Return True if the program has imported OpenTelemetry."""
    # A module has no names yet while it is being imported.
    return _OPEN_TELEMETRY in sys.modules and hasattr(sys.modules.get(_OPEN_TELEMETRY), "get_tracer")


def begin_send(topic: str, count: int) -> SendSpan | None:
    """Return the span of a send of *count* messages; None if it is not recorded."""
    if not is_tracing():
        return None
    from tidemark.client.tracing.send_span import SendSpan

    return SendSpan.begin(topic, count)


def processing(message: ReceivedMessage, group: str | None = None) -> AbstractContextManager[object]:
    """Return a context manager with a span for processing *message*, a child of the span that sent it.

    It does nothing in a program without OpenTelemetry. `Consumer.consume` applies it to its handler. With `poll`:

        for message in consumer.poll():
            with processing(message, group="billing"):
                handle(message)
    """
    if not is_tracing():
        return contextlib.nullcontext()
    from tidemark.client.tracing.receive_spans import process_span

    return process_span(message, group)


def record_received(messages: Sequence[ReceivedMessage], group: str | None, *, waited_s: float) -> None:
    """Record a span for a poll that returned *messages*, with a link to each message's send."""
    if messages and is_tracing():
        from tidemark.client.tracing.receive_spans import record_poll

        record_poll(messages, group, waited_s=waited_s)


def current_carrier() -> dict[str, str]:
    """Return `traceparent`, and `tracestate` if set, of the program's current span; {} without one."""
    if not is_tracing():
        return {}
    from opentelemetry.trace import get_current_span

    from tidemark.tracing.propagation import carrier_of

    span = get_current_span()
    return carrier_of(span) if span.is_recording() else {}
