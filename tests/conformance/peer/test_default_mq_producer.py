"""RocketMQ's DefaultMQProducerTest, ProduceAccumulatorTest and MessageBatchTest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.peer.message_store import MessageStore
from tidemark.client import AsyncProducer, Hooks, Message, Producer
from tidemark.client.send_result import SendResult
from tidemark.errors import (
    ArgumentIllegalError,
    BatchDelayError,
    BatchEmptyError,
    BatchRetryTopicError,
    DeadlineExceededError,
    TopicNotFoundError,
    WriterUnreachableError,
)
from tidemark.format.message_id import decode_offset_message_id

pytestmark = pytest.mark.conformance


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    """Run a store with a topic `t` of one queue and without automatic topics."""
    with MessageStore(tmp_path, auto_create_topics=False) as running:
        running.create_topic("t")
        yield running


def test_pr1_a_failed_send_names_the_reason(store: MessageStore) -> None:
    """The body is empty, the writer is unreachable, or the topic has no route."""
    with Producer(store.writer.address) as producer:
        with pytest.raises(BatchEmptyError, match="without a body"):
            producer.send("t", b"")
        with pytest.raises(TopicNotFoundError, match="nowhere"):
            producer.send("nowhere", b"x")
    with (
        Producer("127.0.0.1:1", timeout_s=1) as producer,
        pytest.raises((WriterUnreachableError, DeadlineExceededError)),
    ):
        producer.send("t", b"x")


def test_pr2_every_kind_of_send_returns_id_and_offset(store: MessageStore) -> None:
    """The ways are single, asynchronous, batch, asynchronous batch, and from a coroutine."""

    async def send() -> SendResult:
        async with AsyncProducer(store.writer.address) as producer:
            return await producer.send("t", b"x")

    with Producer(store.writer.address) as producer:
        results = [
            producer.send("t", b"x"),
            producer.send_async("t", b"x").result(30),
            producer.send_batch([Message("t", b"x"), Message("t", b"y")]),
            producer.send_batch_async([Message("t", b"x"), Message("t", b"y")]).result(30),
        ]
    results.append(asyncio.run(send()))
    assert [result.queue_offset for result in results] == [0, 1, 2, 4, 6]
    for result in results:
        ids = [decode_offset_message_id(one) for one in result.offset_message_ids]
        assert {str(one.store_host) for one in ids} == {"192.168.7.65:10911"}
        assert [one.physical_offset for one in ids] == result.physical_offsets
        assert len(ids) == result.count


def test_pr3_hooks_run_before_and_after_a_send(store: MessageStore) -> None:
    """They run before and after; a forbid hook ends the send."""
    seen: list[object] = []

    def forbid(message: Message) -> None:
        if message.tag == "no":
            raise PermissionError

    hooks = Hooks(
        forbid=forbid,
        before_send=lambda message: seen.append(message.body),
        after_send=lambda _, outcome: seen.append(outcome),
    )
    with Producer(store.writer.address, hooks=hooks) as producer:
        sent = producer.send("t", b"x")
        with pytest.raises(PermissionError):
            producer.send("t", b"y", tag="no")
    assert seen == [b"x", sent]
    assert len(store.records()) == 1


def test_pr4_a_writer_that_failed_is_avoided(store: MessageStore) -> None:
    """The other writer gets all messages at once."""
    with Producer([store.writer.address, "127.0.0.1:1"], timeout_s=5) as producer:
        assert {producer.send("t", b"x").writer for _ in range(10)} == {store.writer.address}


def test_pr5_an_accumulator_makes_batches_of_single_sends(store: MessageStore) -> None:
    """Each send has its own offset and id."""
    with Producer(store.writer.address, accumulate=True) as producer:
        futures = [producer.send_async("t", b"%d" % n) for n in range(100)]
        results = [future.result(30) for future in futures]
    assert [result.queue_offset for result in results] == list(range(100))
    assert len({result.request_id for result in results}) == 100
    assert len({result.store_timestamp_ms for result in results}) < 100
    assert [record.body for record in store.records()] == [b"%d" % n for n in range(100)]


def test_mb1_batches_of_delayed_messages_and_to_retry_topics_are_refused(store: MessageStore) -> None:
    """Two messages of one topic are a batch; messages with different topics or WAIT values are not."""
    store.create_topic("%RETRY%g")
    with Producer(store.writer.address) as producer:
        assert producer.send_batch([Message("t", b"x"), Message("t", b"y")]).count == 2
        with pytest.raises(BatchDelayError):
            producer.send_batch([Message("t", b"x"), Message("t", b"y", properties={"DELAY": "3"})])
        for other in (Message("u", b"y"), Message("t", b"y", properties={"WAIT": "false"})):
            with pytest.raises(ArgumentIllegalError):
                producer.send_batch([Message("t", b"x"), other])
        with pytest.raises(BatchRetryTopicError):
            producer.send_batch([Message("%RETRY%g", b"x"), Message("%RETRY%g", b"y")])
