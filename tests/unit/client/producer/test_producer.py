"""A producer's requests and its handling of answers, against a fake writer."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.unit.client.fake_writer import Entry, FakeWriter, Gate, Result, connect, refusal
from tidemark.client import AsyncProducer, Message, Producer, SendStatus
from tidemark.errors import (
    BatchEmptyError,
    DeadlineExceededError,
    InFlightLimitError,
    MessageSizeExceededError,
    NextOffsetMismatchError,
    PropertiesIllegalError,
    PropertiesSizeExceededError,
    StoreClosedError,
    StoreError,
    WriterUnreachableError,
)
from tidemark.format.elements import Element, encode_elements
from tidemark.format.primitives import java_hash
from tidemark.format.properties import decode_properties


def test_a_message_arrives_with_its_tag_keys_and_properties(writer: FakeWriter, producer: Producer) -> None:
    result = producer.send("orders", "hällo", key="k1", tag="A", properties={"colour": "red"}, queue_id=2)

    (element,) = writer.stored[2]
    assert element.body == "hällo".encode()
    assert decode_properties(element.properties) == {"TAGS": "A", "KEYS": "k1", "colour": "red"}
    assert (result.topic, result.queue_id, result.queue_offset, result.count) == ("orders", 2, 0, 1)
    assert result.status is SendStatus.PUT_OK
    assert result.offset_message_ids == ["7F00000100000050" + "0" * 16]


def test_a_key_chooses_the_queue_by_its_hash(writer: FakeWriter, producer: Producer) -> None:
    """The queue is |hashCode| mod queues; the absolute value of the minimum integer is covered."""
    keys = ["k1", "k2", "ключ", "polygenelubricants"]
    assert [producer.send("t", b"x", key=key).queue_id for key in keys] == [abs(java_hash(key)) % 4 for key in keys]


def test_messages_without_a_key_are_distributed_round_robin(writer: FakeWriter, producer: Producer) -> None:
    """Four sends reach four queues."""
    assert {producer.send("t", b"x").queue_id for _ in range(4)} == {0, 1, 2, 3}


def test_a_batch_is_stored_in_one_queue_in_order(writer: FakeWriter, producer: Producer) -> None:
    """One request carries all messages."""
    result = producer.send_batch([Message("t", f"{n}", keys=("k",)) for n in range(10)])
    assert [element.body for element in writer.stored[result.queue_id]] == [b"%d" % n for n in range(10)]
    assert result.count == 10
    assert result.physical_offsets == [100 * n for n in range(10)]


def test_many_async_sends_share_frames_and_keep_their_order(writer: FakeWriter, producer: Producer) -> None:
    """Answers match their sends, and a queue has the order of the sends."""
    futures = [producer.send_async("t", f"{n}", queue_id=0) for n in range(2000)]
    assert [future.result().queue_offset for future in futures] == list(range(2000))
    assert [element.body for element in writer.stored[0]] == [b"%d" % n for n in range(2000)]
    assert len(writer.frames) < 2000


def test_a_refusal_is_raised_as_its_type_with_its_facts(writer: FakeWriter, producer: Producer) -> None:
    """The stable reason chooses the exception; the stream continues."""
    facts = {"expected": "5", "actual": "7", "topic": "12", "reason": "STALE"}
    error = refusal("NEXT_OFFSET_MISMATCH", facts)
    writer.on_entry = lambda entry: Result(correlation_id=entry.correlation_id, error=error)
    with pytest.raises(NextOffsetMismatchError, match="refused") as raised:
        producer.send("t", b"x", queue_id=0, expected_next_offset=5)
    assert raised.value.facts == {"expected": 5, "actual": 7, "topic": "12", "reason": "STALE"}
    writer.on_entry = lambda _: None
    assert producer.send("t", b"x", queue_id=0).queue_offset == 0


def test_an_unknown_reason_is_a_store_error(writer: FakeWriter, producer: Producer) -> None:
    """A newer writer may know more reasons than this client."""
    writer.on_entry = lambda entry: Result(correlation_id=entry.correlation_id, error=refusal("BRAND_NEW"))
    with pytest.raises(StoreError, match="BRAND_NEW"):
        producer.send("t", b"x", queue_id=0)


def test_back_pressure_waits_for_the_retry_delay_of_the_writer(writer: FakeWriter, producer: Producer) -> None:
    """RESOURCE_EXHAUSTED is retried after RetryInfo's delay, with the same request id."""
    refused: list[str] = []

    def refuse_twice(entry: Entry) -> Result | None:
        if len(refused) == 2:
            return None
        refused.append(entry.batch.request_id)
        return Result(correlation_id=entry.correlation_id, error=refusal("IN_FLIGHT_LIMIT", retry_after_ms=60))

    writer.on_entry = refuse_twice
    before = time.monotonic()
    result = producer.send("t", b"x", queue_id=0)
    assert time.monotonic() - before >= 0.12
    assert refused == [result.request_id] * 2


def test_lasting_back_pressure_is_raised_at_the_timeout(writer: FakeWriter) -> None:
    """There is one timeout in total, and the last reason is raised."""
    error = refusal("IN_FLIGHT_LIMIT", retry_after_ms=60_000)  # so that no attempt is unanswered at the timeout
    writer.on_entry = lambda entry: Result(correlation_id=entry.correlation_id, error=error)
    with Producer(writer.address, timeout_s=2) as producer, pytest.raises(InFlightLimitError):
        producer.send("t", b"x", queue_id=0)


def test_unanswered_batches_are_resent_after_the_stream_breaks(writer: FakeWriter, producer: Producer) -> None:
    """The request ids and the order stay, and each batch is stored once."""
    breaks = itertools.chain([False, False, True, False, True], itertools.repeat(False))

    def sometimes_break(entry: Entry) -> Result | None:
        if next(breaks):
            writer._append(entry)  # stored, but never answered
            raise RuntimeError("the stream breaks")
        return None

    writer.on_entry = sometimes_break
    futures = [producer.send_async("t", f"{n}", queue_id=1) for n in range(50)]
    results = [future.result() for future in futures]
    assert [element.body for element in writer.stored[1]] == [b"%d" % n for n in range(50)]
    assert [result.queue_offset for result in results] == list(range(50))
    assert any(result.duplicate for result in results)


def test_a_restarted_writer_gets_the_pending_batch(writer: FakeWriter, producer: Producer) -> None:
    """The caller does not notice a restart on the same port within the timeout."""
    producer.send("t", b"first", queue_id=0)
    writer.stop()
    future = producer.send_async("t", b"second", queue_id=0)
    time.sleep(0.3)
    assert not future.done()
    writer.start()
    assert future.result().queue_offset == 1


def test_a_batch_that_a_stopping_writer_refuses_keeps_its_order(writer: FakeWriter, producer: Producer) -> None:
    """A stopping writer refuses, then its stream ends: the next writer gets the batch before later sends."""
    refused = threading.Event()

    def refuse(entry: Entry) -> Result:
        refused.set()
        error = refusal("STORE_CLOSED", retry_after_ms=300)
        return Result(correlation_id=entry.correlation_id, error=error)

    writer.on_entry = refuse
    first = producer.send_async("t", b"first", queue_id=0)
    assert refused.wait(5)
    writer.stop()
    writer.on_entry = lambda _: None
    second = producer.send_async("t", b"second", queue_id=0)
    writer.start()
    assert [first.result().queue_offset, second.result().queue_offset] == [0, 1]


def test_a_send_without_a_connection_raises_writer_unreachable() -> None:
    """Nothing listens at the address: WriterUnreachableError after the timeout."""
    with Producer("127.0.0.1:9", timeout_s=0.3) as producer:
        before = time.monotonic()
        with pytest.raises(WriterUnreachableError):
            producer.send("t", b"x", queue_id=0)
        assert time.monotonic() - before < 2


def test_a_missing_answer_is_an_unknown_outcome(writer: FakeWriter) -> None:
    """A batch that was sent but not answered raises DeadlineExceededError with the request id."""

    def swallow(entry: Entry) -> Result:
        return Result(correlation_id=0, error=refusal("IGNORED"))

    with Producer(writer.address, timeout_s=1) as producer:
        connect(producer)
        writer.on_entry = swallow
        future = producer.send_async("t", b"x", queue_id=0)
        with pytest.raises(DeadlineExceededError, match="may be stored"):
            future.result()


def test_bytes_in_flight_are_bounded(writer: FakeWriter) -> None:
    """Beyond the limit a send waits; it raises if no room comes."""
    with Producer(writer.address, timeout_s=1, max_in_flight_bytes=5000) as producer:
        connect(producer)
        writer.on_entry = lambda entry: Result(correlation_id=0, error=refusal("IGNORED"))
        future = producer.send_async("t", b"x" * 4000, queue_id=0)
        time.sleep(0.1)
        assert producer.would_wait("t", 4000)
        with pytest.raises(DeadlineExceededError):
            future.result()
        producer.send_async("t", b"x" * 4000, queue_id=0)  # there is room again
    with pytest.raises(StoreClosedError):
        producer.send("t", b"x", queue_id=0)


def test_a_callback_may_send_again(writer: FakeWriter, producer: Producer) -> None:
    """Futures are completed outside the producer's lock."""
    chained = []
    first = producer.send_async("t", b"1", queue_id=0)
    first.add_done_callback(lambda _: chained.append(producer.send_async("t", b"2", queue_id=0)))
    first.result()
    assert producer.flush(5)
    assert chained[0].result().queue_offset == 1


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Message("t", b"x", keys=("two words",)), PropertiesIllegalError),
        (Message("t", b"x", keys=("",)), PropertiesIllegalError),
        (Message("t", b"x", tag="a\x02b"), PropertiesIllegalError),
        (Message("t", b"x", properties={"a\x01": "b"}), PropertiesIllegalError),
        (Message("t", b"x", properties={"a": ""}), PropertiesIllegalError),
        (Message("t", b"x", tag="A", properties={"TAGS": "B"}), PropertiesIllegalError),
        (Message("t", b"x", properties={"a": "b" * 32_768}), PropertiesSizeExceededError),
        (Message("t", b"x" * (9 << 20)), MessageSizeExceededError),
    ],
)
def test_an_invalid_message_is_refused_before_it_is_sent(
    writer: FakeWriter, producer: Producer, message: Message, error: type[StoreError]
) -> None:
    """The error is typed, and nothing reaches the writer."""
    with pytest.raises(error):
        producer.send(message, queue_id=0)
    assert writer.received == []


def test_an_empty_batch_is_refused(producer: Producer) -> None:
    with pytest.raises(BatchEmptyError):
        producer.send_batch([])


def test_asyncio_awaits_the_same_results(writer: FakeWriter) -> None:
    """A hundred sends run concurrently on one loop."""

    async def run() -> list[int]:
        async with AsyncProducer(f"127.0.0.1:{writer.port}") as producer:
            results = await asyncio.gather(*(producer.send("t", f"{n}", key="k") for n in range(100)))
        return [result.queue_offset for result in results]

    assert sorted(asyncio.run(run())) == list(range(100))


def test_messages_in_flight_are_bounded(writer: FakeWriter) -> None:
    """The limit counts messages of any size; a batch counts as its messages."""
    gate = Gate(writer)
    with Producer(writer.address, timeout_s=5, max_in_flight_messages=10) as producer, ThreadPoolExecutor(1) as pool:
        producer.send_batch_async([Message("t", b"x")] * 10)
        assert producer.would_wait("t", 1)
        waiting = pool.submit(producer.send, "t", b"x")
        time.sleep(0.1)
        assert not waiting.done()
        gate.open()
        assert waiting.result(5).count == 1


def test_a_packed_batch_in_flight_counts_as_one_message(writer: FakeWriter) -> None:
    """It costs as much as one message, apart from its bytes."""
    gate = Gate(writer)
    packed = encode_elements([Element(b"x")] * 10)
    with Producer(writer.address, timeout_s=5, max_in_flight_messages=2) as producer:
        first = producer.send_packed_async("t", packed, count=10)
        assert not producer.would_wait("t", 1)
        second = producer.send_packed_async("t", packed, count=10)
        assert producer.would_wait("t", 1)
        gate.open()
        assert [future.result(5).count for future in (first, second)] == [10, 10]


def test_a_oneway_send_is_stored(writer: FakeWriter, producer: Producer) -> None:
    """Only flush waits for its answer."""
    producer.send_oneway("t", b"x", tag="A", queue_id=1)
    producer.send_oneway(Message("t", b"y"), queue_id=1)
    assert producer.flush(5)
    assert [element.body for element in writer.stored[1]] == [b"x", b"y"]


def test_a_oneway_send_is_never_repeated(writer: FakeWriter, producer: Producer) -> None:
    """It is repeated neither after a temporary refusal nor after a broken stream."""
    tried: list[bytes] = []

    def refuse(entry: Entry) -> Result:
        tried.append(entry.batch.packed)
        if len(tried) == 2:
            raise RuntimeError("the stream breaks")
        return Result(correlation_id=entry.correlation_id, error=refusal("IN_FLIGHT_LIMIT", retry_after_ms=1))

    writer.on_entry = refuse
    for body in (b"refused", b"broken"):
        producer.send_oneway("t", body, queue_id=0)
        assert not producer.flush(5)  # the send failed
    writer.on_entry = lambda _: None
    producer.send("t", b"last", queue_id=0)
    assert len(tried) == 2
    assert [element.body for element in writer.stored[0]] == [b"last"]


def test_a_oneway_send_is_validated_before_it_is_sent(writer: FakeWriter, producer: Producer) -> None:
    """An error that the client can detect is raised."""
    with pytest.raises(BatchEmptyError):
        producer.send_oneway("t", b"")
