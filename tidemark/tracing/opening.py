"""From settings to Tracing. The only place that services ask, whether traces are on or off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.tracing.settings import Traces, TraceSettings

if TYPE_CHECKING:
    from tidemark.tracing.exporting import Tracing


def open_tracing(settings: TraceSettings, service: str) -> Tracing | None:
    """None where traces are off: then nothing of OpenTelemetry is imported."""
    if settings.traces is Traces.OFF:
        return None
    from tidemark.tracing.exporting import Tracing

    return Tracing(service, shutdown_ms=settings.trace_shutdown_ms)
