"""Programs that trace, each in its own process: `sender TOPIC`, `reader TOPIC`. The environment has settings."""

from __future__ import annotations

import sys
import threading

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tidemark.client import Consumer, Producer, Query, ReceivedMessage


def send(topic: str) -> None:
    """Send one message within a span of the program's own; print its trace."""
    with Producer() as producer, trace.get_tracer("program").start_as_current_span("checkout") as span:
        producer.send(topic, b"an order", key="k1")
        sys.stdout.write(trace.format_trace_id(span.get_span_context().trace_id))


def read(topic: str) -> None:
    """Handle one message; its handler requests it once more from the query service."""
    done = threading.Event()

    def handle(message: ReceivedMessage) -> None:
        with Query() as query:
            query.message(message.offset_msg_id or "")
        done.set()

    with Consumer(topic, group="billing") as consumer:
        consumer.consume(handle, stop=done)


if __name__ == "__main__":
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    {"sender": send, "reader": read}[sys.argv[1]](sys.argv[2])
    provider.shutdown()
