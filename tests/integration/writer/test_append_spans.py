"""Spans of appends at a collector."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.builders import wire_batch
from tests.fixed_ports import fixed_port
from tests.integration.tracing.collector import Collector
from tidemark.v1 import commit_log_pb2 as pb

from .harness import RunningWriter, stored_records

pytestmark = pytest.mark.integration
TRACE, SPAN = "ab" * 16, "cd" * 8
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"
BATCH = pb.AppendBatchRequest(topic="t", packed=wire_batch((b"body", b"", 0), (b"more", b"", 0)), queue_id=1)


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Run the collector that the environment names."""
    with Collector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.endpoint)
        yield running


def test_a_batch_has_a_span_with_append_and_flush_children(tmp_path: Path, collector: Collector) -> None:
    """The span continues the caller's trace, from the call's metadata or the request, and has the batch's offsets."""
    with RunningWriter(tmp_path, traces="otlp") as writer:
        first = writer.log.AppendBatch(BATCH, metadata=(("traceparent", TRACEPARENT),))
        other = pb.AppendBatchRequest(traceparent=f"00-{'12' * 16}-{SPAN}-01")
        other.MergeFrom(BATCH)
        writer.log.AppendBatch(other, metadata=(("traceparent", TRACEPARENT),))
    spans = {(span.trace_id, span.name): span for span in collector.spans}
    assert set(spans) == {(trace, name) for trace in (TRACE, "12" * 16) for name in ("append t", "append", "flush")}
    span = spans[TRACE, "append t"]
    assert (span.service, span.kind, span.parent_id, span.is_error) == ("tidemark-writer", "SERVER", SPAN, False)
    assert span.attributes["messaging.system"] == "tidemark"
    assert span.attributes["messaging.destination.name"] == "t"
    assert span.attributes["messaging.destination.partition.id"] == "1"
    assert span.attributes["messaging.batch.message_count"] == 2
    assert span.attributes["tidemark.physical_offset"] == first.physical_offset
    assert span.attributes["tidemark.end_physical_offset"] == first.end_physical_offset
    assert {spans[TRACE, part].parent_id for part in ("append", "flush")} == {span.span_id}


def test_each_batch_of_a_stream_belongs_to_its_own_trace(tmp_path: Path, collector: Collector) -> None:
    """A stream carries many senders' batches; a refused one has its reason."""
    traces = [f"{number:032x}" for number in range(1, 4)]
    batches = [pb.AppendBatchRequest(topic="t", traceparent=f"00-{trace}-{SPAN}-01") for trace in traces]
    for batch in batches[:2]:
        batch.packed = BATCH.packed
    entries = [pb.AppendStreamRequest.Entry(correlation_id=i, batch=batch) for i, batch in enumerate(batches)]
    with RunningWriter(tmp_path, traces="otlp") as writer:
        list(writer.log.AppendStream(iter([pb.AppendStreamRequest(batches=entries)])))
    spans = {span.trace_id: span for span in collector.spans if span.name == "append t"}
    assert set(spans) == set(traces)
    assert [spans[trace].is_error for trace in traces] == [False, False, True]
    assert spans[traces[2]].attributes["error.type"] == "BATCH_EMPTY"


def test_unsampled_batches_have_no_span(tmp_path: Path, collector: Collector) -> None:
    """The batch is stored unchanged."""
    with RunningWriter(tmp_path, traces="otlp") as writer:
        writer.log.AppendBatch(BATCH, metadata=(("traceparent", TRACEPARENT[:-1] + "0"),))
    assert collector.spans == []
    assert [record.properties for record in stored_records(tmp_path)] == [b"", b""]


def test_without_the_setting_there_is_no_span(tmp_path: Path, collector: Collector) -> None:
    """Tracing is off by default, even with other OpenTelemetry variables."""
    with RunningWriter(tmp_path) as writer:
        writer.log.AppendBatch(BATCH, metadata=(("traceparent", TRACEPARENT),))
    assert collector.spans == []


def test_an_unavailable_collector_does_not_stop_appends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many more batches than the span queue holds are all stored, and the stop stays within its limit."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{fixed_port()}")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16")
    with RunningWriter(tmp_path, traces="otlp", trace_shutdown_ms=300) as writer:
        for _ in range(300):
            writer.log.AppendBatch(BATCH, timeout=5)
        began = time.monotonic()
    assert time.monotonic() - began < 5
    assert len(list(stored_records(tmp_path))) == 600
    assert writer.failure is None


def test_calls_of_other_grpc_services_are_answered_without_a_span(tmp_path: Path, collector: Collector) -> None:
    """The health service has no request id, and no span."""
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with RunningWriter(tmp_path, traces="otlp") as writer, grpc.insecure_channel(writer.address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert collector.spans == []
