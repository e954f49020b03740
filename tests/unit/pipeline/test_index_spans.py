"""The driver's spans of an epoch and of the traced messages in it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import orjson
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.indexer.pipeline.index_spans import IndexSpans
from services.indexer.pipeline.shards.shard_builder import ShardProgress
from services.indexer.pipeline.traced_messages import Indexed

TRACE_ID, PARENT_ID = 0xAB << 120 | 1, 0xCD << 56 | 2
ORDER = Indexed(f"00-{TRACE_ID:032x}-{PARENT_ID:016x}-01", "orders", 3, 4096, began_ns=1_000, ended_ns=5_000)


class Spans:
    """The spans of finished epochs."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.index_spans = IndexSpans(provider.get_tracer("pipeline"))

    def finish(self, *rows: dict[str, Any]) -> tuple[ReadableSpan, list[ReadableSpan]]:
        """Finish an epoch; return its span and those of its messages."""
        self._exporter.clear()
        self.index_spans.epoch_finished(rows)
        spans = self._exporter.get_finished_spans()
        (epoch,) = (span for span in spans if span.name == "epoch")
        return epoch, [span for span in spans if span is not epoch]


@pytest.fixture
def spans() -> Spans:
    return Spans()


def row(shard: int, *traced: Indexed, **fields: Any) -> dict[str, Any]:
    return asdict(ShardProgress(1, shard, traced=orjson.dumps(traced).decode() if traced else "", **fields))


def test_an_epoch_is_one_span_over_all_its_shards(spans: Spans) -> None:
    """It covers the built range of the log, and lasts as long as the shard that was held longest."""
    began_ns = time.time_ns()
    epoch, messages = spans.finish(
        row(0, start_offset=100, end_offset=900, records=7, held_s=2.0),
        row(1, start_offset=50, end_offset=800, records=9, held_s=30.0),
    )
    assert messages == []
    assert epoch.attributes is not None and epoch.start_time is not None and epoch.end_time is not None
    assert epoch.attributes["tidemark.physical_offset"] == 50
    assert epoch.attributes["tidemark.end_physical_offset"] == 900
    assert (epoch.attributes["tidemark.records"], epoch.attributes["tidemark.follower"]) == (16, 1)
    assert epoch.end_time - epoch.start_time == 30_000_000_000
    assert began_ns <= epoch.end_time <= time.time_ns()


def test_a_traced_message_has_a_span_in_its_own_trace(spans: Spans) -> None:
    """The span's times are those of the build in the task, not those of the epoch's end."""
    _, (message,) = spans.finish(row(0, ORDER), row(1))
    assert message.context is not None and message.parent is not None and message.attributes is not None
    assert message.name == "index orders"
    assert (message.context.trace_id, message.parent.span_id) == (TRACE_ID, PARENT_ID)
    assert (message.start_time, message.end_time) == (1_000, 5_000)
    assert message.attributes["messaging.destination.name"] == "orders"
    assert message.attributes["messaging.destination.partition.id"] == "3"
    assert message.attributes["tidemark.physical_offset"] == 4096


def test_each_messages_span_is_linked_to_the_epoch_that_indexed_it(spans: Spans) -> None:
    """The epoch is in another trace, because it indexes messages of many traces."""
    for _ in range(2):
        epoch, messages = spans.finish(row(0, ORDER, ORDER), row(1, ORDER))
        assert epoch.context is not None
        assert len(messages) == 3
        assert epoch.context.trace_id != TRACE_ID
        assert [[link.context.span_id for link in message.links] for message in messages] == [
            [epoch.context.span_id]
        ] * 3
