"""TraceSettings: whether a service makes spans. Destination and sampling are OpenTelemetry's variables OTEL_…."""

from __future__ import annotations

import enum

from pydantic import Field
from pydantic_settings import BaseSettings


class Traces(enum.StrEnum):
    """Destination of spans: none, or a collector over OTLP/gRPC."""

    OFF = "off"
    OTLP = "otlp"


class TraceSettings(BaseSettings):
    """Settings of each service. docs/tracing.md."""

    traces: Traces = Field(
        Traces.OFF, description="off, or otlp: send spans to the collector that OTEL_EXPORTER_OTLP_… name"
    )
    trace_shutdown_ms: int = Field(
        2_000, ge=0, le=60_000, description="at a stop: longest time to send the last spans before they are dropped"
    )


class MessageTraceSettings(TraceSettings):
    """Settings of a service that reads trace contexts from messages."""

    trace_max_messages: int = Field(
        100, ge=0, le=10_000, description="limit of traced messages per epoch or pull that get a span of their own"
    )
