"""PullSpans: makes a span in a message's own trace for each traced message that a pull returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from opentelemetry import trace
from opentelemetry.trace import Link, SpanKind, Tracer

from tidemark.format.properties import TRACEPARENT
from tidemark.tracing import attributes
from tidemark.tracing.propagation import context_of
from tidemark.tracing.traced_records import traced_records

from .pulled import Pulled

A = TypeVar("A")


class PullSpans:
    """Makes the spans of pulls. limit: most traced messages of one pull that get a span."""

    def __init__(self, tracer: Tracer, *, limit: int) -> None:
        self._tracer = tracer
        self._limit = limit

    def around(self, answer: Callable[[Pulled], A], topic: str, queue_id: int) -> Callable[[Pulled], A]:
        """Wrap *answer* to make a span per traced message, linked to the request's span, which is current now."""
        link = Link(trace.get_current_span().get_span_context())

        def answer_and_trace(pulled: Pulled) -> A:
            began_ns = time.time_ns()
            response = answer(pulled)
            self._record_spans(pulled, link, topic, queue_id, began_ns)
            return response

        return answer_and_trace

    def _record_spans(self, pulled: Pulled, link: Link, topic: str, queue_id: int, began_ns: int) -> None:
        left, now_ns = self._limit, time.time_ns()
        for part in pulled.result.parts:
            records = part.records
            wanted = records.right if part.chosen is None else records.right & part.chosen
            for found in traced_records(records.buffer, records.places, records.rows, limit=left):
                if not wanted[found.row]:
                    continue
                left -= 1
                span = self._tracer.start_span(
                    f"pull {topic}",
                    context_of({TRACEPARENT: found.traceparent}),
                    SpanKind.INTERNAL,
                    {
                        attributes.SYSTEM: attributes.TIDEMARK,
                        attributes.DESTINATION: topic,
                        attributes.PARTITION: str(queue_id),
                        attributes.OPERATION: "pull",
                        attributes.PHYSICAL_OFFSET: int(records.rows["physical_offset"][found.row]),
                    },
                    [link],
                    began_ns,
                )
                span.end(now_ns)
