"""Single sends that share batches, against a fake writer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from tests.unit.client.fake_writer import Entry, FakeWriter, Gate, Result, connect, refusal
from tidemark.client import Accumulation, Message, Producer, SendResult
from tidemark.errors import (
    BatchEmptyError,
    DeadlineExceededError,
    InFlightLimitError,
    StoreClosedError,
    TopicForbiddenError,
)
from tidemark.format.elements import Element, decode_elements
from tidemark.format.properties import decode_properties

_LONG = Accumulation(hold_ms=30_000)  # a group is sent only on an answer or when it has enough bytes


@pytest.fixture
def producer(writer: FakeWriter) -> Iterator[Producer]:
    """Return a producer that holds messages until an answer arrives."""
    with Producer(writer.address, timeout_s=5, accumulate=_LONG) as client:
        yield client


def sizes(writer: FakeWriter) -> list[int]:
    return [len(list(decode_elements(request.packed))) for request in writer.received]


def send_while_one_is_on_its_way(
    writer: FakeWriter, producer: Producer, messages: list[Message]
) -> list[Future[SendResult]]:
    """Send one message, then *messages* while it is in flight; then let the writer answer."""
    gate = Gate(writer)
    first = producer.send_async("first", b"x")
    assert gate.reached.wait(5)
    futures = [producer.send_async(message) for message in messages]
    writer.on_entry = lambda _: None
    gate.open()
    first.result()
    return futures


def test_a_batch_is_sent_immediately_when_none_is_in_flight(writer: FakeWriter, producer: Producer) -> None:
    """Messages may be held for 30 s."""
    before = time.monotonic()
    for _ in range(5):
        producer.send("t", b"x")
    assert time.monotonic() - before < 2
    assert sizes(writer) == [1] * 5


def test_messages_sent_while_one_is_in_flight_form_one_batch(writer: FakeWriter, producer: Producer) -> None:
    """The batch is sent on the answer; each message has its own queue offset and id."""
    messages = [Message("t", b"%d" % n, keys=["k"]) for n in range(50)]
    results = [future.result() for future in send_while_one_is_on_its_way(writer, producer, messages)]
    assert sizes(writer) == [1, 50]
    (queue_id,) = {result.queue_id for result in results}
    stored = writer.stored[queue_id][-50:]
    assert [element.body for element in stored] == [b"%d" % n for n in range(50)]
    ids = [decode_properties(element.properties)["UNIQ_KEY"] for element in stored]
    assert len(set(ids)) == 50
    assert [result.request_id for result in results] == ids
    first = results[0].queue_offset
    assert [result.queue_offset for result in results] == [first + n for n in range(50)]
    assert [result.physical_offset for result in results] == [100 * n for n in range(50)]
    assert [result.physical_offsets for result in results] == [[100 * n] for n in range(50)]
    assert {result.count for result in results} == {1}


def test_messages_are_batched_by_topic_queue_and_tag(writer: FakeWriter, producer: Producer) -> None:
    """Messages of one group keep their order."""
    messages = [
        Message("t", b"1", tag="A"),
        Message("t", b"2", tag="B"),
        Message("u", b"3", tag="A"),
        Message("t", b"4", tag="A"),
    ]
    for future in send_while_one_is_on_its_way(writer, producer, messages):
        future.result()
    bodies = [[element.body for element in decode_elements(request.packed)] for request in writer.received[1:]]
    assert sorted(bodies) == [[b"1", b"4"], [b"2"], [b"3"]]


def test_a_batch_on_a_batch_topic_carries_the_tag_of_its_messages(writer: FakeWriter, producer: Producer) -> None:
    """A queue's unit has one tag, by which pulls filter."""
    writer.attributes = {"queue.type": "BatchCQ"}
    producer.send("t", b"x", tag="A")
    assert dict(writer.received[0].properties) == {"TAGS": "A"}


def test_a_large_batch_is_sent_without_waiting_for_an_answer(writer: FakeWriter) -> None:
    """A group is sent at hold_bytes, though the writer has not answered."""
    gate = Gate(writer)
    with Producer(writer.address, accumulate=Accumulation(hold_ms=30_000, hold_bytes=1000)) as producer:
        futures = [producer.send_async("t", b"x" * 100) for _ in range(21)]
        gate.open()
        producer.flush()
        assert all(future.done() for future in futures)
    assert sizes(writer)[:3] == [1, 7, 7]  # each has 164 bytes


def test_messages_are_held_for_at_most_hold_ms(writer: FakeWriter) -> None:
    """A writer that does not answer does not hold messages back for longer."""
    gate = Gate(writer)
    with Producer(writer.address, accumulate=Accumulation(hold_ms=20)) as producer:
        producer.send_async("t", b"1")
        assert gate.reached.wait(5)
        producer.send_async("t", b"2")
        end = time.monotonic() + 5
        while producer._writers.links()[0].stream._pending.messages_in_flight < 2:
            assert time.monotonic() < end
            time.sleep(0.005)
        gate.open()


def test_an_invalid_message_does_not_fail_the_others(writer: FakeWriter, producer: Producer) -> None:
    """The client refuses invalid messages; it sends the messages of a refused batch again one by one."""

    def refuse_batches_with_bad(entry: Entry) -> Result | None:
        if b"bad" in entry.batch.packed:
            return Result(correlation_id=entry.correlation_id, error=refusal("TOPIC_FORBIDDEN"))
        return None

    with pytest.raises(BatchEmptyError):
        producer.send("t", b"")
    gate = Gate(writer)
    producer.send_async("first", b"x")
    assert gate.reached.wait(5)
    futures = [producer.send_async("t", body) for body in (b"1", b"bad", b"2")]
    writer.on_entry = refuse_batches_with_bad
    gate.open()
    good = [futures[0].result(), futures[2].result()]
    with pytest.raises(TopicForbiddenError):
        futures[1].result()
    stored = {element.body: decode_properties(element.properties)["UNIQ_KEY"] for element in _stored(writer)}
    assert {body: stored[body] for body in (b"1", b"2")} == {
        b"1": good[0].request_id,
        b"2": good[1].request_id,
    }


@pytest.mark.parametrize("bad", [b"bad", b"good"])
def test_flush_reports_the_messages_of_a_refused_batch_that_are_refused_alone(
    writer: FakeWriter, producer: Producer, bad: bytes
) -> None:
    """The refusal of the batch itself does not count."""

    def refuse(entry: Entry) -> Result | None:
        if entry.batch.packed.count(b"UNIQ_KEY") > 1 or b"bad" in entry.batch.packed:
            return Result(correlation_id=entry.correlation_id, error=refusal("TOPIC_FORBIDDEN"))
        return None

    gate = Gate(writer)
    producer.send_async("first", b"x")
    assert gate.reached.wait(5)
    for body in (b"1", bad, b"2"):
        producer.send_async("t", body)
    writer.on_entry = refuse
    gate.open()
    assert producer.flush(5) == (bad == b"good")
    assert producer.flush(5)
    assert len(_stored(writer)) == 3 + (bad == b"good")


def _stored(writer: FakeWriter) -> list[Element]:
    return [element for queue in writer.stored.values() for element in queue]


def test_a_missing_answer_is_an_unknown_outcome_for_all_messages(writer: FakeWriter) -> None:
    """The batch may be stored, so it is not sent again."""
    with Producer(writer.address, timeout_s=1, accumulate=True) as producer:
        connect(producer)
        writer.on_entry = lambda entry: Result(correlation_id=0, error=refusal("IGNORED"))
        futures = [producer.send_async("t", b"x") for _ in range(3)]
        for future in futures:
            with pytest.raises(DeadlineExceededError):
                future.result()


@pytest.mark.parametrize("options", [{"request_id": "order-1"}, {"delay_level": 1}, {"properties": {"DELAY": "1"}}])
def test_messages_with_their_own_options_are_sent_alone(
    writer: FakeWriter, producer: Producer, options: dict[str, object]
) -> None:
    """They are sent after the held messages of their topic."""
    gate = Gate(writer)
    producer.send_async("first", b"x")
    assert gate.reached.wait(5)
    producer.send_async("t", b"1", key="k")
    alone = producer.send_async("t", b"2", key="k", **options)  # type: ignore[arg-type]
    writer.on_entry = lambda _: None
    gate.open()
    alone.result()
    assert sizes(writer) == [1, 1, 1]
    assert [element.body for element in decode_elements(writer.received[2].packed)] == [b"2"]


def test_a_message_with_a_unique_key_keeps_it(writer: FakeWriter, producer: Producer) -> None:
    """Duplicates are recognised by it."""
    assert producer.send("t", b"x", properties={"UNIQ_KEY": "mine"}).request_id == "mine"


def test_all_messages_in_flight_are_bounded(writer: FakeWriter) -> None:
    """Beyond the limit a send waits for room."""
    gate = Gate(writer)
    with Producer(writer.address, accumulate=Accumulation(total_bytes=500)) as producer, ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            producer.send_async("t", b"x" * 100)
        assert producer.would_wait("t", 100)
        waiting = pool.submit(producer.send, "t", b"x" * 100)
        time.sleep(0.1)
        assert not waiting.done()
        gate.open()
        assert waiting.result(5).count == 1
        assert not producer.would_wait("t", 100)


def test_a_send_without_room_fails_at_its_timeout(writer: FakeWriter) -> None:
    """The send fails after its own timeout, while the writer rejects the others for longer."""
    gate = Gate(writer)
    with Producer(writer.address, timeout_s=0.3, accumulate=Accumulation(total_bytes=200)) as producer:
        producer._accumulator._bytes = producer._accumulator._messages = 1000  # type: ignore[union-attr]
        with pytest.raises(InFlightLimitError):
            producer.send("t", b"x" * 100)
    gate.open()


def test_the_wait_for_room_counts_towards_the_timeout(writer: FakeWriter) -> None:
    """2.5 of 3 seconds pass before there is room; then the writer does not answer."""
    first_gate = Gate(writer)
    bounds = Accumulation(total_messages=1)
    with Producer(writer.address, timeout_s=3, accumulate=bounds) as producer, ThreadPoolExecutor(1) as pool:
        producer.send_async("t", b"first", queue_id=0)
        assert first_gate.reached.wait(5)
        second_gate = Gate(writer)
        began = time.monotonic()
        waiting = pool.submit(producer.send, "t", b"second", queue_id=0)
        time.sleep(2.5)
        first_gate.open()
        with pytest.raises(DeadlineExceededError):
            waiting.result()
        took_s = time.monotonic() - began
        second_gate.open()
    assert took_s < 4.5  # it would be 5.5 if the batch had its own timeout


def test_a_hold_ends_before_the_timeout(writer: FakeWriter) -> None:
    """A message whose hold limit is above its timeout is still sent in time."""
    gate = Gate(writer)
    with Producer(writer.address, timeout_s=9, accumulate=Accumulation(hold_ms=30_000)) as producer:
        first = producer.send_async("t", b"on its way", queue_id=0)
        assert gate.reached.wait(5)
        producer.send_async("t", b"held", queue_id=0)
        assert producer._accumulator is not None
        while producer._accumulator.held_messages():
            assert not first.done()
            time.sleep(0.05)
        gate.open()


def test_closing_sends_the_held_messages(writer: FakeWriter) -> None:
    """Afterwards no message is accepted."""
    gate = Gate(writer)
    producer = Producer(writer.address, timeout_s=5, accumulate=_LONG)
    futures = [producer.send_async("t", b"%d" % n) for n in range(10)]
    gate.open()
    producer.close()
    assert all(future.result().count == 1 for future in futures)
    with pytest.raises(StoreClosedError):
        producer.send("t", b"x")


def test_concurrent_threads_share_batches(writer: FakeWriter, producer: Producer) -> None:
    """Every message is stored once, in its thread's order, in fewer batches than messages."""

    def run(name: int) -> list[tuple[int, int]]:
        results = [producer.send("t", b"%d %d" % (name, n), key="k") for n in range(50)]
        return [(result.queue_id, result.queue_offset) for result in results]

    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(run, range(8)))
    (queue_id,) = {queue for thread in places for queue, _ in thread}
    bodies = [element.body for element in writer.stored[queue_id]]
    for name, thread in enumerate(places):
        assert [bodies[offset] for _, offset in thread] == [b"%d %d" % (name, n) for n in range(50)]
    assert len(writer.received) < 400
