"""Export of spans to a collector."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tidemark.tracing.exporting import Tracing


class Kept(SpanExporter):
    """An exporter that keeps its spans; it blocks until *held* is set."""

    def __init__(self, held: threading.Event | None = None) -> None:
        self.spans: list[ReadableSpan] = []
        self._held = held

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._held is not None:
            self._held.wait()
        self.spans += spans
        return SpanExportResult.SUCCESS


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("HOME", "/", "tidemark-writer"),
        ("OTEL_SERVICE_NAME", "orders-log", "orders-log"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=orders-log", "orders-log"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test", "tidemark-writer"),
    ],
)
def test_the_service_name_can_be_set_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, name: str
) -> None:
    """The standard's variables take precedence."""
    monkeypatch.setenv(variable, value)
    exporter = Kept()
    tracing = Tracing("writer", shutdown_ms=5_000, exporter=exporter)
    tracing.tracer.start_span("x").end()
    tracing.close()
    (span,) = exporter.spans
    assert span.resource.attributes["service.name"] == name


def test_a_stop_does_not_wait_for_a_hanging_collector() -> None:
    """The stop ends at its limit; spans that exceed the queue are dropped, and creating a span never waits."""
    held = threading.Event()
    tracing = Tracing("writer", shutdown_ms=200, exporter=Kept(held))
    began = time.monotonic()
    for _ in range(10_000):  # a queue has 2048
        tracing.tracer.start_span("x").end()
    tracing.close()
    assert time.monotonic() - began < 5
    held.set()
