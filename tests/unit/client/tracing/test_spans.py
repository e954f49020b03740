"""Spans of the client in a program that traces, and the trace context in its messages."""

from __future__ import annotations

import sys
import threading

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import SpanKind, Tracer, format_span_id, format_trace_id

from tests.unit.client.fake_writer import FakeWriter, Result, refusal
from tidemark.client import Message, Producer, ReceivedMessage, processing
from tidemark.client.tracing import receive_spans, send_span
from tidemark.client.tracing.spans import current_carrier, record_received
from tidemark.errors import TopicForbiddenError
from tidemark.format.elements import decode_elements, encode_elements
from tidemark.format.properties import decode_properties


class Program:
    """Tracing of one program, without the global provider, which a process can set only once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sampler: Sampler) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(sampler)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer: Tracer = provider.get_tracer("program")
        for module in (send_span, receive_spans):
            monkeypatch.setattr(module, "_tracer", self.tracer)

    @property
    def spans(self) -> list[ReadableSpan]:
        """Return the finished spans."""
        return list(self._exporter.get_finished_spans())


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return a program that samples everything."""
    return Program(monkeypatch, ALWAYS_ON)


def carried(writer: FakeWriter) -> list[dict[str, str]]:
    """Return the properties of each received message, without the client's own."""
    messages = [element for request in writer.received for element in decode_elements(request.packed)]
    properties = [decode_properties(message.properties) for message in messages]
    return [{name: value for name, value in one.items() if name != "UNIQ_KEY"} for one in properties]


def traceparent_of(span: ReadableSpan) -> str:
    context = span.context
    assert context is not None
    return f"00-{format_trace_id(context.trace_id)}-{format_span_id(context.span_id)}-{context.trace_flags:02x}"


def test_a_send_is_a_span_that_its_message_carries(writer: FakeWriter, program: Program) -> None:
    """The span is a child of the program's span; the request carries the same context to the writer."""
    with Producer(writer.address) as producer, program.tracer.start_as_current_span("checkout") as outer:
        producer.send("t", "one", properties={"a": "b"})
    send, checkout = program.spans
    assert (send.name, send.kind) == ("send t", SpanKind.PRODUCER)
    assert send.parent is not None
    assert send.parent.span_id == outer.get_span_context().span_id
    assert carried(writer) == [{"a": "b", "traceparent": traceparent_of(send)}]
    assert [request.traceparent for request in writer.received] == [traceparent_of(send)]
    assert send.attributes is not None
    assert {name: send.attributes[name] for name in ("messaging.system", "messaging.destination.name")} == {
        "messaging.system": "tidemark",
        "messaging.destination.name": "t",
    }
    assert checkout.name == "checkout"


@pytest.mark.parametrize("accumulate", [False, True])
def test_every_message_of_a_batch_carries_its_send(writer: FakeWriter, program: Program, accumulate: bool) -> None:
    """A batch has one span; sends that share a batch have one span each, and the batch carries the first one's."""
    with Producer(writer.address, accumulate=accumulate) as producer:
        producer.send_batch([Message("t", "a"), Message("t", "b", properties={"traceparent": "older"})])
        for future in [producer.send_async("t", body) for body in "cd"]:
            future.result()
        producer.flush()
    spans = {span.start_time: traceparent_of(span) for span in program.spans}
    batch, third, fourth = (spans[at] for at in sorted(spans, key=lambda at: at or 0))
    assert [one["traceparent"] for one in carried(writer)] == [batch, batch, third, fourth]
    assert [request.traceparent for request in writer.received][:2] == [batch, third]


def test_packed_bytes_are_not_changed(writer: FakeWriter, program: Program) -> None:
    """The request carries the context to the writer; the packed messages are not changed."""
    packed = encode_elements([Message("t", "a").to_element()])
    with Producer(writer.address) as producer:
        producer.send_packed_async("t", packed).result()
    (span,) = program.spans
    (request,) = writer.received
    assert (request.packed, request.traceparent) == (packed, traceparent_of(span))


def test_a_failed_send_records_its_reason(writer: FakeWriter, program: Program) -> None:
    """The writer refused it, or it failed before it was sent."""
    with Producer(writer.address) as producer:
        writer.on_entry = lambda entry: Result(correlation_id=entry.correlation_id, error=refusal("TOPIC_FORBIDDEN"))
        with pytest.raises(TopicForbiddenError):
            producer.send("t", "a")
        with pytest.raises(TypeError):
            producer.send("t", 7)  # type: ignore[arg-type]
    reasons = [span.attributes["error.type"] for span in program.spans if span.attributes]
    assert reasons == ["TOPIC_FORBIDDEN", "INTERNAL"]
    assert all(not span.status.is_ok for span in program.spans)


def test_unsampled_sends_carry_no_context(writer: FakeWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no property, and no context for the writer."""
    program = Program(monkeypatch, ALWAYS_OFF)
    with Producer(writer.address) as producer, program.tracer.start_as_current_span("checkout"):
        producer.send("t", "a")
        assert current_carrier() == {}
    assert (carried(writer), writer.received[0].traceparent, program.spans) == ([{}], "", [])


def test_trace_false_keeps_context_out_of_messages(writer: FakeWriter, program: Program) -> None:
    """The program traces, but has switched the properties off."""
    with Producer(writer.address, trace=False) as producer:
        producer.send("t", "a")
    assert (carried(writer), writer.received[0].traceparent, program.spans) == ([{}], "", [])


def test_the_client_does_not_import_open_telemetry_by_itself(
    writer: FakeWriter, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client does not import it unless the program has."""
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    with Producer(writer.address) as producer:
        producer.send("t", "a")
    with processing(received()):
        record_received([received()], None, waited_s=0.0)
    assert (carried(writer), current_carrier(), program.spans) == ([{}], {}, [])
    assert "opentelemetry.trace" not in sys.modules


def received(**properties: str) -> ReceivedMessage:
    """Return a message of topic t."""
    return ReceivedMessage(
        "t", 3, 7, b"body", None, (), properties, "id", None, 99, 0, 0, 0, 0, 0, "127.0.0.1:1", "127.0.0.1:2"
    )


TRACEPARENT = f"00-{'ab' * 16}-{'cd' * 8}-01"


def test_the_handling_of_a_message_continues_the_trace_of_its_sender(program: Program) -> None:
    """The handler's requests and errors belong to the trace, whatever else the thread does."""
    with program.tracer.start_as_current_span("other"):
        with processing(received(traceparent=TRACEPARENT), "billing"):
            inner = current_carrier()
        with pytest.raises(ZeroDivisionError), processing(received(traceparent=TRACEPARENT)):
            raise ZeroDivisionError
    first, second, _ = program.spans
    assert (first.name, first.kind) == ("process t", SpanKind.CONSUMER)
    assert first.parent is not None
    assert (format_trace_id(first.parent.trace_id), format_span_id(first.parent.span_id)) == ("ab" * 16, "cd" * 8)
    assert inner == {"traceparent": traceparent_of(first)}
    assert first.attributes is not None
    assert first.attributes["messaging.consumer.group.name"] == "billing"
    assert not second.status.is_ok


def test_a_message_without_a_trace_is_handled_in_the_programs_trace(program: Program) -> None:
    """The span belongs to the program's current trace."""
    with program.tracer.start_as_current_span("other") as other, processing(received()):
        pass
    handled, _ = program.spans
    assert handled.parent == other.get_span_context()


def test_a_poll_span_links_to_the_traces_of_its_messages(program: Program) -> None:
    """The messages have many senders, so the poll is not a child of one of them."""
    record_received([received(traceparent=TRACEPARENT), received(), received(traceparent="rubbish")], "g", waited_s=1.5)
    (span,) = program.spans
    assert (span.name, span.kind, span.parent) == ("poll t", SpanKind.CLIENT, None)
    assert [format_trace_id(link.context.trace_id) for link in span.links] == ["ab" * 16]
    assert span.attributes is not None
    assert span.attributes["messaging.batch.message_count"] == 3
    assert span.start_time is not None
    assert span.end_time is not None
    assert 1.4e9 < span.end_time - span.start_time < 1.6e9


def test_an_empty_poll_has_no_span(program: Program) -> None:
    """An idle consumer would otherwise produce only such spans."""
    record_received([], "g", waited_s=1.0)
    assert program.spans == []


def test_concurrent_first_sends_all_have_spans(writer: FakeWriter, program: Program) -> None:
    """The client imports its tracing code at that moment."""
    with Producer(writer.address) as producer:
        threads = [threading.Thread(target=producer.send, args=("t", "a")) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(program.spans) == len({traceparent_of(span) for span in program.spans}) == 8
    assert trace.get_current_span() is trace.INVALID_SPAN
