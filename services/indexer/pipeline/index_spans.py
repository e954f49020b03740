"""IndexSpans: a span for each epoch, and one for each traced message that it made visible, in the message's trace."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.trace import Link, SpanKind, Tracer

from tidemark.format.properties import TRACEPARENT
from tidemark.tracing import attributes
from tidemark.tracing.propagation import context_of

from .traced_messages import Indexed, parse_indexed


class IndexSpans:
    """Exporter of index spans in the driver. It runs when an epoch ends, so spans are delayed until then."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def epoch_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Create the spans of one epoch from its *rows* of progress."""
        now_ns = time.time_ns()
        span = self._tracer.start_span(
            "epoch",
            attributes={
                attributes.SYSTEM: attributes.TIDEMARK,
                attributes.OPERATION: "index",
                attributes.PHYSICAL_OFFSET: min(row["start_offset"] for row in rows),
                attributes.END_PHYSICAL_OFFSET: max(row["end_offset"] for row in rows),
                "tidemark.follower": rows[0]["follower"],
                "tidemark.records": sum(row["records"] for row in rows),
            },
            start_time=now_ns - int(max(row["held_s"] for row in rows) * 1e9),
        )
        for row in rows:
            for indexed in parse_indexed(row["traced"]):
                self._record_span(indexed, Link(span.get_span_context()))
        span.end(now_ns)

    def _record_span(self, indexed: Indexed, epoch: Link) -> None:
        span = self._tracer.start_span(
            f"index {indexed.topic}",
            context_of({TRACEPARENT: indexed.traceparent}),
            SpanKind.INTERNAL,
            {
                attributes.SYSTEM: attributes.TIDEMARK,
                attributes.DESTINATION: indexed.topic,
                attributes.PARTITION: str(indexed.queue_id),
                attributes.OPERATION: "index",
                attributes.PHYSICAL_OFFSET: indexed.physical_offset,
            },
            [epoch],
            indexed.began_ns,
        )
        span.end(indexed.ended_ns)
