"""The producer against the real writer: its results match the records from ReadLog."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future

import pyarrow as pa
import pytest

from tests.integration.client.stored import records
from tidemark.client import BATCH_QUEUE, AsyncProducer, Message, Producer, SendResult, SendStatus, Topics
from tidemark.errors import (
    BatchDelayError,
    BatchEmptyError,
    BatchMalformedError,
    InnerBatchIllegalError,
    MessageSizeExceededError,
    NextOffsetMismatchError,
    PropertiesIllegalError,
    QueueIllegalError,
    RequestConflictError,
    StoreError,
    TopicAttributeError,
    TopicExistsError,
    TopicIllegalError,
    TopicNotFoundError,
)
from tidemark.format.elements import decode_elements
from tidemark.format.properties import decode_properties
from tidemark.local.local_stack import WRITER, LocalStack

pytestmark = pytest.mark.integration


def test_messages_sent_singly_are_stored_unchanged(writer: LocalStack, producer: Producer) -> None:
    """Body, tag, keys, properties and the results' places are compared."""
    results = [
        producer.send("one", f"body {n}", keys=[f"k{n}", "all"], tag="A", properties={"n": str(n)}, queue_id=n % 2)
        for n in range(6)
    ]
    stored = records(writer.writer_address, "one")
    assert [record.body for record in stored] == [b"body %d" % n for n in range(6)]
    for n, (record, result) in enumerate(zip(stored, results, strict=True)):
        assert (record.queue_id, record.queue_offset) == (result.queue_id, result.queue_offset) == (n % 2, n // 2)
        assert record.physical_offset == result.physical_offset == result.physical_offsets[0]
        assert record.store_timestamp == result.store_timestamp_ms
        assert decode_properties(record.properties) == {
            "TAGS": "A",
            "KEYS": f"k{n} all",
            "n": str(n),
            "UNIQ_KEY": result.request_id,
        }
        assert result.offset_message_ids[0].endswith(f"{record.physical_offset:016X}")
        assert result.status is SendStatus.PUT_OK


def test_async_sends_keep_their_order(writer: LocalStack, producer: Producer) -> None:
    """Many are in flight; offsets are dense and in the order of sends."""
    futures = [producer.send_async("async", f"{n}", queue_id=0) for n in range(1000)]
    assert [future.result().queue_offset for future in futures] == list(range(1000))
    assert [record.body for record in records(writer.writer_address, "async")] == [b"%d" % n for n in range(1000)]


def test_a_batch_gets_consecutive_offsets(writer: LocalStack, producer: Producer) -> None:
    """A simple topic has one record per message."""
    result = producer.send_batch([Message("batch", f"{n}") for n in range(100)], queue_id=3)
    stored = records(writer.writer_address, "batch")
    assert [record.queue_offset for record in stored] == list(range(100))
    assert [record.physical_offset for record in stored] == result.physical_offsets
    assert result.end_physical_offset > stored[-1].physical_offset


def test_a_batch_on_a_batch_topic_is_one_record(writer: LocalStack, producer: Producer) -> None:
    """The record's body is the wire batch."""
    producer.topics.create("inner", queues=1, attributes=BATCH_QUEUE)
    result = producer.send_batch([Message("inner", f"{n}", tag="A") for n in range(100)])
    (record,) = records(writer.writer_address, "inner")
    assert [element.body for element in decode_elements(record.body)] == [b"%d" % n for n in range(100)]
    assert (result.count, len(result.physical_offsets)) == (100, 1)


@pytest.mark.parametrize("attributes", [{}, BATCH_QUEUE], ids=["simple", "batch"])
def test_every_row_of_a_table_is_stored_where_the_result_says(
    writer: LocalStack, producer: Producer, attributes: dict[str, str]
) -> None:
    """There are several batches in four queues, with and without keys."""
    topic = f"table-{len(attributes)}"
    producer.topics.create(topic, queues=4, attributes=attributes)
    n = 20_000
    table = pa.table(
        {"k": [f"ключ{i % 53}" if i % 7 else None for i in range(n)], "b": [f"body {i}" for i in range(n)]}
    )
    result = producer.send_table(table, topic, key="k", body="b", batch_size=500)

    found: dict[tuple[int, int], tuple[bytes, str | None]] = {}
    for record in records(writer.writer_address, topic):
        elements = decode_elements(record.body) if attributes else [(record.body, record.properties, 0)]
        for position, (body, properties, _) in enumerate(elements):
            place = (record.queue_id, record.queue_offset + position)
            found[place] = (body, decode_properties(properties).get("KEYS"))
    assert len(found) == n
    places = zip(result.queue_ids.tolist(), result.queue_offsets.tolist(), strict=True)
    for row, place in enumerate(places):
        assert found[place] == (b"body %d" % row, f"ключ{row % 53}" if row % 7 else None)


def test_the_same_request_id_is_stored_once(writer: LocalStack, producer: Producer) -> None:
    """The repetition gets the original's place."""
    first = producer.send("once", b"x", queue_id=0, request_id="order-1")
    again = producer.send("once", b"x", queue_id=0, request_id="order-1")
    assert (again.duplicate, again.physical_offset) == (True, first.physical_offset)
    with pytest.raises(RequestConflictError):
        producer.send("once", b"other", queue_id=0, request_id="order-1")
    assert len(records(writer.writer_address, "once")) == 1


def test_compare_and_append_reports_the_actual_offset(producer: Producer) -> None:
    """Facts are typed."""
    producer.send("cas", b"x", queue_id=0, expected_next_offset=0)
    with pytest.raises(NextOffsetMismatchError) as raised:
        producer.send("cas", b"x", queue_id=0, expected_next_offset=0)
    assert raised.value.facts == {"expected": 0, "actual": 1}


@pytest.mark.parametrize(
    ("message", "queue_id", "error"),
    [
        (Message("errors", b"x"), 99, QueueIllegalError),
        (Message("errors", b""), 0, BatchEmptyError),
        (Message("errors", b"x" * ((4 << 20) + 1)), 0, MessageSizeExceededError),
        (Message("errors", b"x", properties={"DELAY": "soon"}), 0, PropertiesIllegalError),
        (Message("errors", b"x", properties={"TIMER_DELAY_SEC": "3"}), 0, BatchDelayError),
        (Message("errors", b"x", properties={"INNER_NUM": "3"}), 0, InnerBatchIllegalError),
        (Message("no topic", b"x"), 0, TopicIllegalError),
        (Message("%RETRY%", b"x"), 0, TopicIllegalError),
    ],
)
def test_each_refusal_raises_its_own_exception(
    producer: Producer, message: Message, queue_id: int, error: type[StoreError]
) -> None:
    """The stream continues."""
    with pytest.raises(error):
        producer.send(message, queue_id=queue_id)
    assert producer.send("after", b"x").count == 1


def test_malformed_packed_bytes_are_refused(producer: Producer) -> None:
    """The fastest path is checked as well."""
    with pytest.raises(BatchMalformedError):
        producer.send_packed_async("errors", b"\x00" * 30, queue_id=0).result()


def test_the_greatest_body_is_stored(writer: LocalStack, producer: Producer) -> None:
    """It has exactly 4 MiB."""
    assert producer.send("great", b"x" * (4 << 20), queue_id=0).count == 1


def test_topics_are_administered(writer: LocalStack) -> None:
    """Create, describe, list, delete, and their errors."""
    with Topics(writer.writer_address) as topics:
        created = topics.create("admin", queues=3)
        assert (created.write_queues, topics.create("admin", queues=3)) == (3, created)
        assert topics.describe("admin") == (created, {0: 0, 1: 0, 2: 0})
        assert created in topics.list_all()
        with pytest.raises(TopicExistsError):
            topics.create("admin", queues=5)
        with pytest.raises(TopicAttributeError):
            topics.create("odd", attributes={"queue.type": "Nope"})
        topics.delete("admin")
        with pytest.raises(TopicNotFoundError):
            topics.describe("admin")


def test_asyncio_sends_are_stored(writer: LocalStack) -> None:
    """They are sent concurrently from one loop."""

    async def run() -> None:
        async with AsyncProducer(writer.writer_address) as producer:
            await asyncio.gather(*(producer.send("aio", f"{n}") for n in range(200)))

    asyncio.run(run())
    assert {record.body for record in records(writer.writer_address, "aio")} == {b"%d" % n for n in range(200)}


@pytest.mark.crash
def test_a_writer_killed_under_load_gets_each_message_once(own_writer: LocalStack) -> None:
    """SIGKILL and a restart on the same port, twice, during sends: nothing is lost, repeated or reordered."""
    answered: list[Future[SendResult]] = []
    with Producer(own_writer.writer_address, timeout_s=60) as producer:
        killer = threading.Thread(target=_kill_and_restart, args=(own_writer, 2, answered))
        killer.start()
        futures: list[Future[SendResult]] = []
        while killer.is_alive():
            futures.append(producer.send_async("killed", f"{len(futures)}", queue_id=0))
            futures[-1].add_done_callback(answered.append)
            time.sleep(0.001)
        futures.append(producer.send_async("killed", f"{len(futures)}", queue_id=0))
        results = [future.result() for future in futures]
        killer.join()
    count = len(results)
    assert [result.queue_offset for result in results] == list(range(count))
    assert len({result.term for result in results}) == 3
    stored = records(own_writer.writer_address, "killed")
    assert [record.body for record in stored] == [b"%d" % n for n in range(count)]


def _kill_and_restart(stack: LocalStack, times: int, answered: Sequence[object]) -> None:
    """Kill it each time after some hundred more answers."""
    for _ in range(times):
        enough, deadline = len(answered) + 300, time.monotonic() + 60
        while len(answered) < enough and time.monotonic() < deadline:
            time.sleep(0.005)
        assert stack.services[WRITER].kill() == -signal.SIGKILL
        stack.start_service(WRITER)


def test_a_closed_producer_leaves_no_stream_to_the_garbage_collector(writer: LocalStack) -> None:
    """gRPC's streams that are collected while the interpreter ends may wait for ever."""
    gc.collect()
    gc.disable()
    try:
        with Producer(writer.writer_address) as producer:
            producer.send("collected", b"x")
        left = [one for one in gc.get_objects() if type(one).__name__ == "_MultiThreadedRendezvous"]
    finally:
        gc.enable()
    assert left == []
