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
        Traces.OFF, description="off, or otlp: export spans to the collector of OTEL_EXPORTER_OTLP_…"
    )
    trace_shutdown_ms: int = Field(2_000, ge=0, le=60_000, description="longest wait for the last spans at a stop")


class MessageTraceSettings(TraceSettings):
    """Settings of a service that reads trace contexts from messages."""

    trace_max_messages: int = Field(
        100, ge=0, le=10_000, description="traced messages per epoch or pull with their own span"
    )
