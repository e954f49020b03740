"""Conversion between W3C trace context as text and OpenTelemetry's contexts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tidemark.format.properties import TRACEPARENT, TRACESTATE

_W3C = TraceContextTextMapPropagator()


def context_of(carrier: Mapping[str, str]) -> Context:
    """Return the parent context in *carrier*; empty without a valid `traceparent`, regardless of the current span."""
    return _W3C.extract(carrier, Context())


def carrier_of(span: Span) -> dict[str, str]:
    """Return `traceparent` and, if present, `tracestate` of *span*."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(span, Context()))
    return carrier


def trace_id_of(span: Span) -> str:
    """Return the trace id as 32 hexadecimal digits."""
    return trace.format_trace_id(span.get_span_context().trace_id)


def carrier_in(pairs: Iterable[tuple[str, str | bytes]]) -> dict[str, str]:
    """Return `traceparent` and `tracestate` from a call's metadata, whose names are in lower case."""
    return {name: value for name, value in pairs if name in (TRACEPARENT, TRACESTATE) and isinstance(value, str)}


def links_to(carriers: Iterable[Mapping[str, str]]) -> list[Link]:
    """Return a link to each valid context."""
    contexts = (trace.get_current_span(context_of(carrier)).get_span_context() for carrier in carriers)
    return [Link(context) for context in contexts if context.is_valid]
