"""Messages with only a topic and a body, over remoting frames and in groups: as `Outbox` sends them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.client.fake_writer import FakeWriter, Gate, Result, refusal
from tests.unit.client.wire.remoting_peer import RemotingPeer, appending, peer
from tidemark.client import Accumulation, AsyncProducer, Compression, Hooks, Message, Producer, SendResult
from tidemark.client.producer.plain_send import PlainSend
from tidemark.errors import (
    BatchEmptyError,
    DeadlineExceededError,
    ForkedProcessError,
    MessageSizeExceededError,
    QueueIllegalError,
    StoreClosedError,
    StoreError,
    TopicForbiddenError,
    TopicIllegalError,
)
from tidemark.format.elements import decode_elements
from tidemark.format.properties import decode_properties
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

Send = Callable[..., SendResult]


@contextlib.contextmanager
def over_remoting(writer: FakeWriter, **settings: Any) -> Iterator[tuple[Producer, RemotingPeer]]:
    """Yield a producer that sends to *writer* in remoting frames, and the peer that receives them."""
    with (
        peer(appending(writer)) as served,
        Producer(writer.address, **{"timeout_s": 5, "trace": False, **settings}) as producer,
    ):
        producer.send_async(Message("t", b"route")).result()
        (link,) = producer._writers.by_address.values()
        link.offer(served.address)
        producer.send_async(Message("t", b"connects")).result()
        writer.received.clear()
        yield producer, served


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Note what the short paths return; None if they do not apply."""
    returned: list[object] = []

    def note(name: str) -> None:
        proper = getattr(PlainSend, name)

        def noted(self: PlainSend, *arguments: object) -> object:
            result = proper(self, *arguments)
            returned.append(result)
            return result

        monkeypatch.setattr(PlainSend, name, noted)

    for name in ("send", "send_message", "gather", "begin_on_loop"):
        note(name)
    return returned


def without_ids(request: AppendBatchRequest) -> AppendBatchRequest:
    copy = AppendBatchRequest()
    copy.CopyFrom(request)
    assert len(copy.request_id) == 32
    copy.request_id, copy.queue_id = "", 0
    return copy


def without_place(result: SendResult) -> SendResult:
    return result._replace(queue_id=0, queue_offset=0, request_id="", message_ids=())


MESSAGES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "a body": (("t", b"body"), {}),
    "a text": (("t", "text"), {}),
    "a Message": ((Message("t", b"body"),), {}),
    "a key": (("t", b"body"), {"key": "k1"}),
    "keys and a tag": ((Message("t", b"body", keys=["k2", "k3"], tag="A"),), {}),
    "properties and a flag": (("t", b"body"), {"properties": {"a": "b"}, "flag": -1}),
    "an own id": (("t", b"body"), {"properties": {"UNIQ_KEY": "own"}, "delay_level": 3}),
    "a retry topic": (("%RETRY%group", b"body"), {}),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_is_sent_with_the_bytes_and_the_result_of_the_other_paths(
    writer: FakeWriter, plain: list[object], message: str
) -> None:
    arguments, options = MESSAGES[message]
    with over_remoting(writer) as (producer, _):
        producer.send_async(*arguments, **options).result()  # asks for the route
        plain.clear()
        writer.received.clear()
        short = producer.send(*arguments, **options)
        assert plain == [short]
        full = producer.send_async(*arguments, **options).result()
    first, second = writer.received
    assert without_ids(first) == without_ids(second)
    own_id = options.get("properties", {}).get("UNIQ_KEY")
    for result, request in ((short, first), (full, second)):
        assert (result.request_id, result.message_ids) == (request.request_id, (own_id or request.request_id,))
        assert result.queue_id == request.queue_id
    has_key = "key" in message
    assert (short.queue_id == full.queue_id) == has_key
    assert without_place(short) == without_place(full)
    assert short.request_id < full.request_id


def test_plain_messages_are_distributed_round_robin(writer: FakeWriter, plain: list[object]) -> None:
    with over_remoting(writer) as (producer, _):
        queues = [producer.send("t", b"x").queue_id for _ in range(8)]
    assert queues[:4] == queues[4:]
    assert sorted(queues[:4]) == [0, 1, 2, 3]
    assert None not in plain


def test_plain_messages_of_the_other_wire_are_distributed_round_robin(writer: FakeWriter, plain: list[object]) -> None:
    """A message for which the short path does not apply takes one turn, not two."""
    with Producer(writer.address, timeout_s=5, trace=False) as producer:
        queues = [producer.send("t", b"x").queue_id for _ in range(8)]
    assert sorted(queues[:4]) == [0, 1, 2, 3]
    assert plain == [None] * 8


@pytest.mark.parametrize(
    ("topic", "body", "settings", "error"),
    [
        ("t", b"", {}, BatchEmptyError),
        ("t", b"x" * 11, {"max_message_size_bytes": 10}, MessageSizeExceededError),
        ("t", "", {}, BatchEmptyError),
        ("t", "x" * 11, {"max_message_size_bytes": 10}, MessageSizeExceededError),
        ("a b", b"x", {}, TopicIllegalError),
        ("a b", "x", {}, TopicIllegalError),
    ],
)
def test_an_illegal_message_is_refused_before_it_is_sent(
    writer: FakeWriter, topic: str, body: bytes | str, settings: dict[str, Any], error: type[StoreError]
) -> None:
    with over_remoting(writer, **settings) as (producer, _):
        for send in (producer.send, producer.send_async):
            with pytest.raises(error):
                send(topic, body)
    assert writer.received == []


@pytest.mark.parametrize(
    "options",
    [
        {"request_id": "r"},
        {"queue_id": 2},
        {"reconsume_times": 1},
        {"properties": {"traceparent": "00-1"}},
        {"properties": {"tracestate": "k=v"}},
    ],
)
def test_a_message_with_an_option_of_its_place_or_a_trace_is_not_plain(
    writer: FakeWriter, plain: list[object], options: dict[str, Any]
) -> None:
    with over_remoting(writer) as (producer, _):
        producer.send("t", b"x", **options)
        producer.send_async("t", b"x", **options).result()
    assert [result for result in plain if result is not None] == []
    first, second = writer.received
    first.queue_id = second.queue_id
    if "request_id" not in options:
        second.request_id = first.request_id
    assert first == second
    properties = options.get("properties", {})
    assert (first.traceparent, first.tracestate) == (
        properties.get("traceparent", ""),
        properties.get("tracestate", ""),
    )


@pytest.mark.parametrize("accumulate", [False, True])
def test_a_topic_with_a_route_that_no_message_may_be_sent_to_is_refused(writer: FakeWriter, accumulate: bool) -> None:
    with over_remoting(writer, accumulate=accumulate) as (producer, _):
        assert producer.queues("SCHEDULE_TOPIC_XXXX")
        for send in (producer.send, producer.send_async):
            with pytest.raises(TopicForbiddenError):
                send("SCHEDULE_TOPIC_XXXX", b"x")
        assert writer.received == []


def test_hooks_see_plain_messages(writer: FakeWriter) -> None:
    seen: list[object] = []
    hooks = Hooks(after_send=lambda message, outcome: seen.append((message.body, outcome)))
    with over_remoting(writer, hooks=hooks) as (producer, _):
        seen.clear()
        result = producer.send("t", b"x")
    assert seen == [(b"x", result)]


def test_a_large_plain_body_is_compressed(writer: FakeWriter, plain: list[object]) -> None:
    with over_remoting(writer, compress=Compression(over_bytes=100)) as (producer, _):
        producer.send("t", b"x" * 99)
        producer.send("t", b"x" * 100)
    assert [bool(request.sys_flag) for request in writer.received] == [False, True]
    assert [result is None for result in plain] == [False, True]


@pytest.mark.parametrize("trace", [False, True])
def test_a_plain_message_of_a_program_that_traces_gets_a_span(
    writer: FakeWriter, plain: list[object], monkeypatch: pytest.MonkeyPatch, trace: bool
) -> None:
    with over_remoting(writer, trace=trace) as (producer, _):
        monkeypatch.setitem(sys.modules, "opentelemetry.trace", SimpleNamespace(get_tracer=None))
        monkeypatch.setattr("tidemark.client.producer.producer.begin_send", lambda topic, count: None)
        producer.send("t", b"x")
        assert bool(plain) != trace


def test_a_refused_plain_message_forgets_the_route_and_flush_does_not_report_it(writer: FakeWriter) -> None:
    with over_remoting(writer) as (producer, _):
        producer.flush()
        asked = writer.asked_routes
        writer.on_entry = lambda entry: Result(correlation_id=entry.correlation_id, error=refusal("QUEUE_ID_ILLEGAL"))
        with pytest.raises(QueueIllegalError):
            producer.send("t", b"x")
        assert producer.flush()
        writer.on_entry = lambda _: None
        producer.send("t", b"x")
        assert writer.asked_routes == asked + 1
        assert producer._delivery._failed == 0


def test_a_plain_message_without_an_answer_fails_at_the_timeout(writer: FakeWriter, plain: list[object]) -> None:
    with over_remoting(writer, timeout_s=0.3) as (producer, served):
        gate = Gate(writer)
        with pytest.raises(DeadlineExceededError):
            producer.send("t", b"x")
        assert producer.flush()
        gate.open()
        assert len(served.frames) == 2


def test_a_closed_producer_sends_no_plain_message(writer: FakeWriter) -> None:
    for accumulate in (False, True):
        with over_remoting(writer, accumulate=accumulate) as (producer, _):
            producer.close()
            for send in (producer.send, producer.send_async):
                for message in (("t", b"x"), (Message("t", b"x"),)):
                    with pytest.raises(StoreClosedError):
                        send(*message)


def test_a_forked_process_sends_no_plain_message(writer: FakeWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    for accumulate in (False, True):
        with over_remoting(writer, accumulate=accumulate) as (producer, _), monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: 1)
            for send in (producer.send, producer.send_async):
                with pytest.raises(ForkedProcessError):
                    send("t", b"x")


# ── in groups ───────────────────────────────────────────────────────────────────────────────────────────────────────


def bodies(request: AppendBatchRequest) -> list[bytes]:
    return [element.body for element in decode_elements(request.packed)]


def test_plain_messages_share_groups_with_others_in_the_order_of_sends(writer: FakeWriter, plain: list[object]) -> None:
    with Producer(writer.address, accumulate=Accumulation(hold_ms=30_000), trace=False) as producer:
        gate = Gate(writer)
        producer.send_async("first", b"x")
        assert gate.reached.wait(5)
        producer.send_async(Message("t", b"asks for the route"))
        futures = [
            producer.send_async("t", b"%d" % number)
            if number % 3
            else producer.send_async(Message("t", b"%d" % number))
            for number in range(30)
        ]
        producer.send_async("t", b"tagged", tag="A")
        gate.open()
        results = [future.result(5) for future in futures]
    assert len([future for future in plain if future is not None]) == 20
    (group,) = (request for request in writer.received if len(bodies(request)) > 2)
    assert bodies(group)[1:] == [b"%d" % number for number in range(30)]
    ids = [decode_properties(element.properties)["UNIQ_KEY"] for element in decode_elements(group.packed)]
    assert [result.request_id for result in results] == ids[1:]
    assert [result.message_ids for result in results] == [(name,) for name in ids[1:]]
    first = results[0].queue_offset
    assert [result.queue_offset for result in results] == list(range(first, first + 30))
    assert {(result.count, result.topic, result.writer) for result in results} == {(1, "t", writer.address)}


def test_a_plain_message_that_fits_no_group_is_sent_alone(writer: FakeWriter, plain: list[object]) -> None:
    with Producer(writer.address, accumulate=Accumulation(hold_bytes=100), trace=False) as producer:
        producer.send_async(Message("t", b"asks for the route")).result()
        assert producer.queues("%RETRY%group")
        for topic, body in (("t", b"x" * 100), ("t", b"x" * 99), ("%RETRY%group", b"x")):
            producer.send_async(topic, body).result()
    assert [future is None for future in plain] == [True, False, True]
    assert [len(bodies(request)) for request in writer.received] == [1] * 4


# ── on an event loop ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_plain_message_of_a_task_is_sent_as_any_message(writer: FakeWriter, plain: list[object]) -> None:
    with over_remoting(writer) as (made, served):

        async def run() -> list[SendResult]:
            producer = AsyncProducer(writer.address)
            producer.producer.close()
            producer.producer = made
            return [await producer.send("t", b"body"), await producer.send(Message("t", b"body"))]

        short, full = asyncio.run(run())
        assert served.accepted == 1
        assert made.flush(5)
    assert len(plain) == 1
    assert plain != [None]
    first, second = writer.received
    assert without_ids(first) == without_ids(second)
    assert short.message_ids == (short.request_id,)
    assert (short.topic, short.count, short.writer) == (full.topic, full.count, full.writer)


def test_a_plain_message_of_a_task_that_has_no_room_does_not_block_the_loop(
    writer: FakeWriter, plain: list[object]
) -> None:
    with over_remoting(writer, max_in_flight_messages=1) as (made, _):
        gate = Gate(writer)

        async def run() -> list[SendResult]:
            producer = AsyncProducer(writer.address)
            producer.producer.close()
            producer.producer = made
            sends = [asyncio.ensure_future(producer.send("t", b"%d" % number)) for number in range(2)]
            await asyncio.sleep(0.05)
            gate.open()
            return list(await asyncio.gather(*sends))

        assert len(asyncio.run(run())) == 2
    assert [future is None for future in plain] == [False, True]


def test_a_refused_plain_message_of_a_task_fails_and_flush_reports_it(writer: FakeWriter) -> None:
    with over_remoting(writer) as (made, _):
        asked = writer.asked_routes
        writer.on_entry = lambda entry: Result(correlation_id=entry.correlation_id, error=refusal("QUEUE_ID_ILLEGAL"))

        async def run() -> None:
            producer = AsyncProducer(writer.address)
            producer.producer.close()
            producer.producer = made
            with pytest.raises(QueueIllegalError):
                await producer.send("t", b"x")

        asyncio.run(run())
        assert not made.flush()
        writer.on_entry = lambda _: None
        made.send("t", b"x")
        assert writer.asked_routes == asked + 1
