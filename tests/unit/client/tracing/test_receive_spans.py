from __future__ import annotations

from opentelemetry.trace import SpanKind, format_trace_id

from tests.unit.client.received_messages import ORDERS, received
from tests.unit.client.tracing.test_spans import Program, program
from tidemark.client.received_message import TopicQueue
from tidemark.client.tracing.receive_spans import process_span, record_poll

__all__ = ["program"]

SENT = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}


def test_a_poll_of_one_topic_has_the_topic_in_its_name(program: Program) -> None:
    record_poll([received(0), received(1)], "billing", waited_s=0.0)
    (span,) = program.spans
    assert span.attributes is not None
    assert (span.name, span.attributes["messaging.destination.name"]) == ("poll orders", "orders")
    assert span.attributes["messaging.consumer.group.name"] == "billing"


def test_a_poll_of_several_topics_names_none(program: Program) -> None:
    record_poll([received(0), received(1, queue=TopicQueue("users", 0))], None, waited_s=0.0)
    (span,) = program.spans
    assert span.attributes is not None
    assert (span.name, "messaging.destination.name" in span.attributes) == ("poll", False)


def test_a_poll_links_to_at_most_128_senders(program: Program) -> None:
    """The SDK's own limit: it would drop more links after they were made."""
    record_poll([received(n, properties=SENT) for n in range(200)], None, waited_s=0.0)
    (span,) = program.spans
    assert (len(span.links), span.dropped_links) == (128, 0)
    assert span.attributes is not None
    assert span.attributes["messaging.batch.message_count"] == 200


def test_the_handling_span_continues_the_senders_trace_and_names_the_offset(program: Program) -> None:
    message = received(7, body=b"four", physical_offset=99, message_id="id", properties=SENT)
    with process_span(message, "billing"):
        pass
    (span,) = program.spans
    assert span.parent is not None
    assert (span.kind, format_trace_id(span.parent.trace_id)) == (SpanKind.CONSUMER, "ab" * 16)
    assert span.attributes is not None
    assert span.attributes["messaging.destination.partition.id"] == str(ORDERS.queue_id)
    assert (span.attributes["tidemark.queue_offset"], span.attributes["tidemark.physical_offset"]) == (7, 99)
    assert span.attributes["messaging.message.id"] == "id"
    assert span.attributes["messaging.message.body.size"] == 4


def test_a_message_without_an_id_or_a_group_has_no_such_attributes(program: Program) -> None:
    with process_span(received(7), None):
        pass
    (span,) = program.spans
    assert span.attributes is not None
    assert not {"messaging.message.id", "messaging.consumer.group.name"} & span.attributes.keys()


def test_the_span_of_a_poll_covers_the_time_that_the_poll_waited(program: Program) -> None:
    record_poll([received(0)], None, waited_s=2.5)
    (span,) = program.spans
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time == 2_500_000_000


def test_the_handling_of_a_message_without_a_trace_is_a_child_of_the_current_span(program: Program) -> None:
    with program.tracer.start_as_current_span("job") as job, process_span(received(7), None):
        pass
    process = program.spans[0]
    assert process.parent is not None
    assert process.parent.span_id == job.get_span_context().span_id
