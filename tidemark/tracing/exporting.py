"""Tracing: sends a service's spans to a collector in the background. Spans beyond the queue's size are dropped.

The SDK is OpenTelemetry's own and reads its own variables: OTEL_EXPORTER_OTLP_…, OTEL_SERVICE_NAME,
OTEL_TRACES_SAMPLER, OTEL_BSP_….
"""

from __future__ import annotations

import logging
import threading
import time

import structlog
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Tracer

from tidemark.version import program_version

_TELL_EVERY_S = 60.0
log = structlog.get_logger()


class Tracing:
    """Tracer of one service. exporter: destination of spans; default: the collector from the environment."""

    def __init__(self, service: str, *, shutdown_ms: int, exporter: SpanExporter | None = None) -> None:
        _log_failures()
        self._exporter = exporter or OTLPSpanExporter()
        self._shutdown_s = shutdown_ms / 1000
        self._provider = TracerProvider(resource=_resource(service), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self.tracer: Tracer = self._provider.get_tracer("tidemark", program_version())

    def close(self) -> None:
        """Send the remaining spans for at most `trace_shutdown_ms`, because the collector may be down."""
        last = threading.Thread(target=self._provider.shutdown, name="trace-shutdown", daemon=True)
        last.start()
        last.join(self._shutdown_s)
        if last.is_alive():
            self._exporter.shutdown()


def _resource(service: str) -> Resource:
    """Return the resource from the environment, with the service's own name as default."""
    own = Resource({SERVICE_NAME: f"tidemark-{service}", SERVICE_VERSION: program_version()})
    given = Resource.create()
    if str(given.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return given.merge(own)
    return own.merge(given)


class _Failures(logging.Handler):
    """Log handler that reports OpenTelemetry's warnings (no collector, a full queue) as an event, once a minute."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._not_before = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if now >= self._not_before:
            self._not_before = now + _TELL_EVERY_S
            log.warning("trace_export_failed", message=record.getMessage())


def _log_failures() -> None:
    complaints = logging.getLogger("opentelemetry")
    if not any(isinstance(handler, _Failures) for handler in complaints.handlers):
        complaints.addHandler(_Failures())
        complaints.propagate = False
