from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.builders import wire_batch
from tests.unit.client.fake_writer import Entry, FakeWriter, Gate, Result, refusal
from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.delivery import SendTracker
from tidemark.client.producer.queue_choice import QueueChoice
from tidemark.client.producer.sender import Outgoing, Sender
from tidemark.client.producer.writer_addresses import FixedList
from tidemark.client.producer.writer_pool import Writers
from tidemark.client.wire.pending_batches import PendingLimits
from tidemark.errors import DiskFullError, InFlightLimitError, MessageSizeExceededError, TopicForbiddenError
from tidemark.tls.credentials import Credentials
from tidemark.v1 import commit_log_pb2

TIMEOUT_S = 20.0


class Sending:
    """A `Sender` to some writers, and its parts."""

    def __init__(self, *addresses: str, retries: int = 2, max_messages: int = 1000) -> None:
        self.writers = Writers(
            FixedList(addresses),
            timeout_s=TIMEOUT_S,
            limits=PendingLimits(1 << 20, max_messages),
            credentials=Credentials(),
        )
        self.delivery = SendTracker(self.writers, timeout_s=TIMEOUT_S)
        choice = QueueChoice(self.writers, avoid_slow=False)
        self.sender = Sender(self.writers, choice, self.delivery, timeout_s=TIMEOUT_S, retries=retries, observe=True)

    def queue(self, writer: FakeWriter, queue_id: int = 0) -> MessageQueue:
        return MessageQueue("orders", writer.address, queue_id)


def batch(request_id: str = "r", body: bytes = b"x", **settings: Any) -> Outgoing:
    request = commit_log_pb2.AppendBatchRequest(topic="orders", request_id=request_id)
    return Outgoing(request, wire_batch((body, b"", 0)), 1, **settings)


def refusing(reason: str) -> Any:
    return lambda entry: Result(correlation_id=entry.correlation_id, error=refusal(reason))


@pytest.fixture
def pair() -> Iterator[tuple[FakeWriter, FakeWriter]]:
    writers = FakeWriter(store_name="a"), FakeWriter(store_name="b")
    for one in writers:
        one.start()
    yield writers
    for one in writers:
        one.stop()


@pytest.fixture
def sending(pair: tuple[FakeWriter, FakeWriter]) -> Iterator[Sending]:
    made = Sending(*(one.address for one in pair))
    yield made
    made.delivery.close()


def test_a_batch_for_a_queue_is_stored_in_it(pair: tuple[FakeWriter, FakeWriter], sending: Sending) -> None:
    result = sending.sender.send(batch(queue=sending.queue(pair[1], 3))).result(TIMEOUT_S)
    assert (result.writer, result.queue_id) == (pair[1].address, 3)


@pytest.mark.parametrize("reason", ["DISK_FULL", "TOPIC_FORBIDDEN"])
def test_a_definite_refusal_moves_the_batch_to_another_writer_under_the_same_id(
    pair: tuple[FakeWriter, FakeWriter], sending: Sending, reason: str
) -> None:
    refused, other = pair
    refused.on_entry = refusing(reason)
    results = [sending.sender.send(batch(f"r{n}")).result(TIMEOUT_S) for n in range(8)]
    assert {result.writer for result in results} == {other.address}
    assert [request.request_id for request in other.received] == [f"r{n}" for n in range(8)]


def test_a_batch_for_a_queue_is_never_sent_to_another_writer(
    pair: tuple[FakeWriter, FakeWriter], sending: Sending
) -> None:
    pair[0].on_entry = refusing("TOPIC_FORBIDDEN")
    with pytest.raises(TopicForbiddenError):
        sending.sender.send(batch(queue=sending.queue(pair[0]))).result(TIMEOUT_S)
    assert pair[1].received == []


def test_a_refused_invalid_batch_is_not_sent_to_another_writer(
    pair: tuple[FakeWriter, FakeWriter], sending: Sending
) -> None:
    """Another writer would refuse it, too."""
    asked: list[Entry] = []

    def refuse(entry: Entry) -> Result:
        asked.append(entry)
        return Result(correlation_id=entry.correlation_id, error=refusal("MESSAGE_SIZE_EXCEEDED"))

    for one in pair:
        one.on_entry = refuse
    with pytest.raises(MessageSizeExceededError):
        sending.sender.send(batch()).result(TIMEOUT_S)
    assert len(asked) == 1


def test_a_oneway_batch_is_sent_once(pair: tuple[FakeWriter, FakeWriter], sending: Sending) -> None:
    for one in pair:
        one.on_entry = refusing("DISK_FULL")
    with pytest.raises(DiskFullError):
        sending.sender.send(batch(once=True)).result(TIMEOUT_S)
    assert sum(len(one.frames) for one in pair) == 1


def test_a_batch_moves_at_most_as_often_as_retries_allow(pair: tuple[FakeWriter, FakeWriter]) -> None:
    """After the last move the refusal is final."""
    sending = Sending(*(one.address for one in pair), retries=1)
    for one in pair:
        one.on_entry = refusing("TOPIC_FORBIDDEN")
    with pytest.raises(TopicForbiddenError):
        sending.sender.send(batch()).result(TIMEOUT_S)
    assert [len(one.frames) for one in pair] == [1, 1]
    assert not sending.delivery.close()


def test_a_failure_fails_the_flush_only_if_it_is_final(pair: tuple[FakeWriter, FakeWriter], sending: Sending) -> None:
    pair[0].on_entry = refusing("TOPIC_FORBIDDEN")
    queue = sending.queue(pair[0])
    with pytest.raises(TopicForbiddenError):
        sending.sender.send(batch(queue=queue, is_final=False)).result(TIMEOUT_S)
    assert sending.delivery.flush(TIMEOUT_S)
    with pytest.raises(TopicForbiddenError):
        sending.sender.send(batch(queue=queue)).result(TIMEOUT_S)
    assert not sending.delivery.flush(TIMEOUT_S)


def test_a_refused_queue_id_invalidates_the_cached_route(pair: tuple[FakeWriter, FakeWriter], sending: Sending) -> None:
    """The topic's queues may be others now."""
    sending.writers.routes.route("orders")
    pair[0].on_entry = refusing("QUEUE_ID_ILLEGAL")
    future = sending.sender.send(batch(queue=sending.queue(pair[0])))
    assert future.exception(TIMEOUT_S) is not None
    sending.delivery.flush(TIMEOUT_S)
    assert sending.writers.routes.known("orders") is None


def test_a_batch_with_wait_false_is_sent_above_the_limit(pair: tuple[FakeWriter, FakeWriter]) -> None:
    """The thread that answers others must not wait; the batch is then in flight above the limit."""
    sending = Sending(pair[0].address, max_messages=1)
    gate = Gate(pair[0])
    first = sending.sender.send(batch("first"))
    with pytest.raises(InFlightLimitError):
        sending.sender.send(batch("late", began=time.monotonic() - TIMEOUT_S))
    second = sending.sender.send(batch("second", wait=False))
    gate.open()
    assert (first.result(TIMEOUT_S).queue_offset, second.result(TIMEOUT_S).request_id) == (0, "second")
    sending.delivery.close()


def test_a_batch_above_the_limit_of_every_writer_is_refused_before_it_is_sent(
    pair: tuple[FakeWriter, FakeWriter], sending: Sending
) -> None:
    """The fake writer's limit is 4 MiB, and its transport takes twice as much."""
    with pytest.raises(MessageSizeExceededError):
        sending.sender.send(batch(body=bytes(9 << 20)))
    assert pair[0].received == pair[1].received == []
