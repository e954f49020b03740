"""Creation of Tracing from the settings: the only place that checks whether traces are on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.tracing.settings import Traces, TraceSettings

if TYPE_CHECKING:
    from tidemark.tracing.exporting import Tracing


def open_tracing(settings: TraceSettings, service: str) -> Tracing | None:
    """Return the service's tracing; None if traces are off, without importing OpenTelemetry."""
    if settings.traces is Traces.OFF:
        return None
    from tidemark.tracing.exporting import Tracing

    return Tracing(service, shutdown_ms=settings.trace_shutdown_ms)
