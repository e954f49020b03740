"""TraceSettings: whether a service makes spans. Where they go, and which are kept, the standard's OTEL_… say."""

from __future__ import annotations

import enum

from pydantic import Field
from pydantic_settings import BaseSettings


class Traces(enum.StrEnum):
    """Where spans go: nowhere, or to a collector over OTLP/gRPC."""

    OFF = "off"
    OTLP = "otlp"


class TraceSettings(BaseSettings):
    """Of each service. docs/tracing.md."""

    traces: Traces = Field(
        Traces.OFF, description="off, or otlp: spans go to the collector that OTEL_EXPORTER_OTLP_… name"
    )
    trace_shutdown_ms: int = Field(
        2_000, ge=0, le=60_000, description="at a stop: the last spans are given up when sending them takes longer"
    )


class MessageTraceSettings(TraceSettings):
    """Of a service that looks for trace contexts in messages."""

    trace_max_messages: int = Field(
        100, ge=0, le=10_000, description="traced messages of one epoch, or of one pull, that get a span of their own"
    )
