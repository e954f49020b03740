"""W3C trace context as text ⇄ OpenTelemetry's contexts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tidemark.format.properties import TRACEPARENT, TRACESTATE

_W3C = TraceContextTextMapPropagator()


def context_of(carrier: Mapping[str, str]) -> Context:
    """What a span's parent is to be: of a *carrier* without a valid `traceparent` none, whatever is current."""
    return _W3C.extract(carrier, Context())


def carrier_of(span: Span) -> dict[str, str]:
    """`traceparent`, and `tracestate` where there is one, of *span*."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(span, Context()))
    return carrier


def trace_id_of(span: Span) -> str:
    """32 hexadecimal digits."""
    return trace.format_trace_id(span.get_span_context().trace_id)


def carrier_in(pairs: Iterable[tuple[str, str | bytes]]) -> dict[str, str]:
    """The same two of a call's metadata, whose names are in lower case."""
    return {name: value for name, value in pairs if name in (TRACEPARENT, TRACESTATE) and isinstance(value, str)}


def links_to(carriers: Iterable[Mapping[str, str]]) -> list[Link]:
    """A link to each context that is valid."""
    contexts = (trace.get_current_span(context_of(carrier)).get_span_context() for carrier in carriers)
    return [Link(context) for context in contexts if context.is_valid]
