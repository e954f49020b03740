"""A message's way through all services, and the programs at both ends, is one trace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.integration.tracing.collector import Collector, Seen
from tidemark.local.local_stack import LocalStack

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]
TOPIC = "orders"
LOOKUP = "GET /v1/messages/{offset_msg_id}"
WAY = {  # service, span, kind
    ("sender", "checkout", "INTERNAL"),
    ("sender", f"send {TOPIC}", "PRODUCER"),
    ("tidemark-writer", f"append {TOPIC}", "SERVER"),
    ("tidemark-pipeline", f"index {TOPIC}", "INTERNAL"),
    ("tidemark-query", f"pull {TOPIC}", "INTERNAL"),
    ("reader", f"process {TOPIC}", "CONSUMER"),
    ("tidemark-query", LOOKUP, "SERVER"),
}


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    """Return the collector of services and programs."""
    with Collector() as running:
        yield running


@pytest.fixture(scope="module")
def traced_stack(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[LocalStack]:
    """Run all services with traces and short epochs, because the pipeline reports messages at an epoch's end."""
    environment = {"TIDEMARK_TRACES": "otlp", "TIDEMARK_EPOCH_MS": "1000", **_exporting(collector)}
    with LocalStack(tmp_path_factory.mktemp("traced") / "data", environment=environment) as stack:
        yield stack


def _exporting(collector: Collector) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "OTEL_BSP_SCHEDULE_DELAY": "100"}


def _run(name: str, stack: LocalStack, collector: Collector) -> str:
    settings = {
        "TIDEMARK_WRITER_ADDRESS": stack.writer_address,
        "TIDEMARK_QUERY_URL": stack.query_url,
        "OTEL_SERVICE_NAME": name,
        **_exporting(collector),
    }
    command = [sys.executable, "-m", "tests.integration.tracing.programs", name, TOPIC]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_service_and_both_programs_are_in_the_senders_trace(
    traced_stack: LocalStack, collector: Collector
) -> None:
    """The trace id is the same from the producer's span to the request of the consumer's handler."""
    trace_id = _run("sender", traced_stack, collector)
    _run("reader", traced_stack, collector)

    def of_trace(spans: list[Seen]) -> list[Seen]:
        return [span for span in spans if span.trace_id == trace_id]

    def is_whole(spans: list[Seen]) -> bool:
        return {(span.service, span.name, span.kind) for span in of_trace(spans)} >= WAY

    spans = {(span.service, span.name): span for span in of_trace(collector.wait(is_whole))}
    send = spans["sender", f"send {TOPIC}"]
    assert send.parent_id == spans["sender", "checkout"].span_id
    append = spans["tidemark-writer", f"append {TOPIC}"]
    process = spans["reader", f"process {TOPIC}"]
    for child in (
        append,
        process,
        spans["tidemark-pipeline", f"index {TOPIC}"],
        spans["tidemark-query", f"pull {TOPIC}"],
    ):
        assert child.parent_id == send.span_id
    assert spans["tidemark-query", LOOKUP].parent_id == process.span_id
    assert {spans["tidemark-writer", part].parent_id for part in ("append", "flush")} == {append.span_id}
    places = {span.attributes["tidemark.physical_offset"] for span in (append, process)}
    places.add(spans["tidemark-pipeline", f"index {TOPIC}"].attributes["tidemark.physical_offset"])
    assert len(places) == 1
    assert not [span for span in spans.values() if span.is_error]
