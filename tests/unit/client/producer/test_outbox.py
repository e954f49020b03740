from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.unit.client.fake_writer import FakeWriter, Gate
from tidemark.client import Accumulation, Compression, Message, MessageQueue, Producer
from tidemark.format.elements import decode_elements, encode_elements
from tidemark.format.primitives import queue_of_key
from tidemark.format.properties import decode_properties

TIMEOUT_S = 20.0
TRACE = {"traceparent": "00-ab-cd-01", "tracestate": "s=1"}


@pytest.fixture
def producer(writer: FakeWriter) -> Iterator[Producer]:
    """A producer whose outbox gathers messages and compresses large bodies."""
    compression = Compression(over_bytes=100)
    with Producer(writer.address, timeout_s=TIMEOUT_S, accumulate=True, compress=compression) as made:
        yield made


def bodies(writer: FakeWriter) -> list[list[bytes]]:
    return [[element.body for element in decode_elements(request.packed)] for request in writer.received]


def test_the_first_key_chooses_the_queue_unless_a_queue_is_named(writer: FakeWriter, producer: Producer) -> None:
    assert producer.send("t", b"x", keys=["k", "other"]).queue_id == queue_of_key("k", 4)
    named = (queue_of_key("k", 4) + 1) % 4
    assert producer.send("t", b"x", key="k", queue_id=named).queue_id == named


def test_a_selector_gets_all_queues_and_the_message_and_decides(writer: FakeWriter, producer: Producer) -> None:
    seen: list[tuple[int, Message]] = []

    def last(queues: Any, message: Message) -> MessageQueue:
        seen.append((len(queues), message))
        return cast(MessageQueue, queues[-1])

    message = Message("t", b"x", keys=["k"])
    assert producer.send(message, selector=last).queue_id == 3
    assert seen == [(4, message)]


@pytest.mark.parametrize(
    "options",
    [
        {"request_id": "own"},
        {"expected_next_offset": 0, "queue_id": 0},
        {"reconsume_times": 1},
        {"delay_level": 1},
        {"properties": {"TIMER_DELIVER_MS": "1"}},
    ],
    ids=str,
)
def test_a_message_with_its_own_options_shares_no_batch(
    writer: FakeWriter, producer: Producer, options: dict[str, Any]
) -> None:
    gate = Gate(writer)
    producer.send_async("t", b"first")
    assert gate.reached.wait(TIMEOUT_S)
    futures = [producer.send_async("t", body, **options) for body in (b"a", b"b")]
    gate.open()
    for future in futures:
        future.result(TIMEOUT_S)
    assert sorted(bodies(writer)) == [[b"a"], [b"b"], [b"first"]]


def test_a_message_sent_alone_does_not_overtake_held_messages(writer: FakeWriter) -> None:
    with Producer(writer.address, timeout_s=TIMEOUT_S, accumulate=Accumulation(hold_ms=30_000)) as producer:
        gate = Gate(writer)
        producer.send_async("t", b"first", queue_id=0)
        assert gate.reached.wait(TIMEOUT_S)
        held = producer.send_async("t", b"held", queue_id=0)
        alone = producer.send_async("t", b"alone", queue_id=0, request_id="own")
        gate.open()
        assert held.result(TIMEOUT_S).queue_offset < alone.result(TIMEOUT_S).queue_offset


def test_a_large_body_is_compressed_and_marked(writer: FakeWriter, producer: Producer) -> None:
    body = b"x" * 1000
    producer.send("t", body)
    (request,) = writer.received
    (element,) = decode_elements(request.packed)
    assert zlib.decompress(element.body) == body
    assert request.sys_flag == 0x1 | 0x300, "RocketMQ's COMPRESSED_FLAG and its type zlib"


def test_a_body_for_a_batch_topic_is_never_compressed(writer: FakeWriter, producer: Producer) -> None:
    """An inner batch has one sys_flag for all of its messages."""
    writer.attributes = {"queue.type": "BatchCQ"}
    producer.send("t", b"x" * 1000)
    assert (bodies(writer), writer.received[0].sys_flag) == ([[b"x" * 1000]], 0)


def test_the_result_names_the_key_that_consumers_see(writer: FakeWriter, producer: Producer) -> None:
    assert list(producer.send("t", b"x", request_id="own").message_ids) == ["own"]
    sent = producer.send("t", b"x", request_id="own2", properties={"UNIQ_KEY": "key"})
    assert (list(sent.message_ids), sent.request_id) == (["key"], "own2")


def test_a_batch_has_one_request_and_a_key_for_each_message(writer: FakeWriter, producer: Producer) -> None:
    sent = producer.send_batch([Message("t", b"a", properties=TRACE), Message("t", b"b")], request_id="own")
    (request,) = writer.received
    keys = [decode_properties(element.properties)["UNIQ_KEY"] for element in decode_elements(request.packed)]
    assert keys == ["own", "own#1"] == list(sent.message_ids)
    assert (request.request_id, request.traceparent, request.tracestate) == ("own", "00-ab-cd-01", "s=1")


def test_packed_messages_are_sent_unchanged(writer: FakeWriter, producer: Producer) -> None:
    packed = encode_elements([Message("t", body).to_element() for body in (b"a", b"x" * 1000)])
    sent = producer.send_packed_async("t", packed, queue_id=2).result(TIMEOUT_S)
    assert (writer.received[0].packed, sent.queue_id, sent.count) == (packed, 2, 2)
