"""One producer and two writers: the choice of a writer, and failover. With real writers: tests/integration/client."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_writer import Entry, FakeWriter, Result, refusal
from tidemark.client import Message, MessageQueue, Producer, SendResult
from tidemark.errors import (
    ArgumentIllegalError,
    DiskFullError,
    MessageSizeExceededError,
    WriterUnreachableError,
)
from tidemark.format.primitives import java_hash


@pytest.fixture
def pair() -> Iterator[tuple[FakeWriter, FakeWriter]]:
    """Return two writers of four queues each, of stores a and b."""
    writers = FakeWriter(store_name="a"), FakeWriter(store_name="b")
    for one in writers:
        one.start()
    yield writers
    for one in writers:
        one.stop()


@pytest.fixture
def producer(pair: tuple[FakeWriter, FakeWriter]) -> Iterator[Producer]:
    """Return a producer for both writers."""
    with Producer([one.address for one in pair], timeout_s=5) as client:
        yield client


def refuse(reason: str, refused: list[str]) -> object:
    def answer(entry: Entry) -> Result:
        refused.append(entry.batch.request_id)
        return Result(correlation_id=entry.correlation_id, error=refusal(reason))

    return answer


def test_messages_are_distributed_over_the_queues_of_both_writers(
    pair: tuple[FakeWriter, FakeWriter], producer: Producer
) -> None:
    """Eight sends reach eight queues, sorted by store."""
    a, b = (one.address for one in pair)
    assert producer.queues("t") == tuple(MessageQueue("t", writer, n) for writer in (a, b) for n in range(4))
    assert {producer.send("t", b"x").queue for _ in range(8)} == set(producer.queues("t"))


def test_a_key_maps_to_one_queue_of_all_writers(pair: tuple[FakeWriter, FakeWriter], producer: Producer) -> None:
    """The queue is |hashCode| mod all queues."""
    for key in ("k1", "k2", "k3", "ключ"):
        wanted = producer.queues("t")[abs(java_hash(key)) % 8]
        assert [producer.send("t", b"x", key=key).queue for _ in range(2)] == [wanted] * 2


def test_only_writers_that_have_the_topic_are_used(pair: tuple[FakeWriter, FakeWriter], producer: Producer) -> None:
    """The other writer would create the topic."""
    pair[0].has_topics = False
    assert {producer.send("t", b"x").writer for _ in range(8)} == {pair[1].address}


def test_a_topic_that_no_writer_has_is_created_at_all_writers(
    pair: tuple[FakeWriter, FakeWriter], producer: Producer
) -> None:
    """A broker cluster likewise spreads the messages of an unknown topic over all brokers."""
    for one in pair:
        one.has_topics = False
    assert {producer.send("t", b"x").writer for _ in range(8)} == {one.address for one in pair}


def test_a_message_queue_selects_its_writer_and_queue(pair: tuple[FakeWriter, FakeWriter], producer: Producer) -> None:
    """A bare number would name two queues."""
    queue = MessageQueue("t", pair[1].address, 3)
    assert [producer.send("t", b"x", queue_id=queue).queue for _ in range(3)] == [queue] * 3
    with pytest.raises(ArgumentIllegalError, match="MessageQueue"):
        producer.send("t", b"x", queue_id=3)


@pytest.mark.parametrize(
    "reason", ["DISK_FULL", "STORE_CLOSED", "TOPIC_NOT_FOUND", "TOPIC_FORBIDDEN", "IN_FLIGHT_LIMIT"]
)
def test_a_temporarily_refused_message_is_sent_to_the_other_writer(
    pair: tuple[FakeWriter, FakeWriter], producer: Producer, reason: str
) -> None:
    """Every message is acknowledged without waiting for the first writer."""
    refused: list[str] = []
    pair[0].on_entry = refuse(reason, refused)  # type: ignore[assignment]
    before = time.monotonic()
    assert {producer.send("t", b"x").writer for _ in range(8)} == {pair[1].address}
    assert refused
    assert time.monotonic() - before < 2


def test_an_invalid_message_is_not_sent_to_another_writer(
    pair: tuple[FakeWriter, FakeWriter], producer: Producer
) -> None:
    """An invalid message is invalid at every writer."""
    refused: list[str] = []
    for one in pair:
        one.on_entry = refuse("MESSAGE_SIZE_EXCEEDED", refused)  # type: ignore[assignment]
    with pytest.raises(MessageSizeExceededError):
        producer.send("t", b"x")
    assert len(refused) == 1


def test_the_last_queue_is_retried_until_the_timeout(pair: tuple[FakeWriter, FakeWriter]) -> None:
    """Both refuse: three queues in turn, then the last one until the timeout, whose reason is raised."""
    refused: dict[int, list[str]] = {0: [], 1: []}
    for number, one in enumerate(pair):
        one.on_entry = refuse("DISK_FULL", refused[number])  # type: ignore[assignment]
    with Producer([one.address for one in pair], timeout_s=2) as producer, pytest.raises(DiskFullError):
        producer.send("t", b"x")
    first, last = sorted(refused.values(), key=len)
    assert (len(first), len(last) > 1) == (1, True)
    assert len({*first, *last}) == 1  # the request id stays


@pytest.mark.parametrize("options", [{"key": "k"}, {"selector": lambda queues, _: queues[0]}])
def test_a_chosen_queue_is_kept_after_a_refusal(
    pair: tuple[FakeWriter, FakeWriter], options: dict[str, object]
) -> None:
    """The order of a key's messages is worth more than a quick answer."""
    refused: list[str] = []
    for one in pair:
        one.on_entry = refuse("DISK_FULL", refused)  # type: ignore[assignment]
    with Producer([one.address for one in pair], timeout_s=2) as producer, pytest.raises(DiskFullError):
        producer.send("t", b"x", **options)  # type: ignore[arg-type]
    assert len(pair[0].frames) == 0 or len(pair[1].frames) == 0


def test_a_selector_gets_all_queues_and_the_message(pair: tuple[FakeWriter, FakeWriter], producer: Producer) -> None:
    """The producer uses the queue that it returns."""
    seen: list[tuple[int, object]] = []

    def select(queues: Sequence[MessageQueue], message: Message) -> MessageQueue:
        seen.append((len(queues), message.body))
        return queues[5]

    assert producer.send("t", b"x", selector=select).queue == producer.queues("t")[5]
    assert producer.send_batch([Message("t", b"y"), Message("t", b"z")], selector=select).queue_id == 1
    assert seen == [(8, b"x"), (8, b"y")]


def test_a_writer_that_is_down_at_the_start_gets_no_messages(pair: tuple[FakeWriter, FakeWriter]) -> None:
    """The other writers are used until it comes."""
    pair[1].stop()
    with Producer([one.address for one in pair], timeout_s=5) as producer:
        before = time.monotonic()
        assert {producer.send("t", b"x").writer for _ in range(8)} == {pair[0].address}
        assert time.monotonic() - before < 3
        pair[1].start()
        end = time.monotonic() + 10
        while producer.send("t", b"x").writer != pair[1].address:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_a_writer_that_stops_gets_no_more_messages(pair: tuple[FakeWriter, FakeWriter], producer: Producer) -> None:
    """After its stream has broken, nothing is sent to it."""
    assert {producer.send("t", b"x").writer for _ in range(8)} == {one.address for one in pair}
    pair[0].stop()
    end = time.monotonic() + 5
    while not producer._writers.link(pair[0].address).stream.is_down:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert {producer.send("t", b"x").writer for _ in range(16)} == {pair[1].address}


def test_a_batch_with_an_unknown_outcome_is_not_sent_to_another_writer(
    pair: tuple[FakeWriter, FakeWriter], producer: Producer
) -> None:
    """The message is stored and the stream breaks before the answer: the other writer does not get it."""
    broken: list[str] = []

    def store_and_break(entry: Entry) -> Result | None:
        if not broken:
            broken.append(entry.batch.request_id)
            pair[0]._append(entry)
            raise RuntimeError("the stream breaks")
        return None

    pair[0].on_entry = store_and_break
    results = [producer.send_async("t", b"%d" % n) for n in range(8)]
    answered: list[SendResult] = [future.result() for future in results]
    assert [result.writer for result in answered if result.request_id == broken[0]] == [pair[0].address]
    stored = [element.body for one in pair for queue in one.stored.values() for element in queue]
    assert sorted(stored) == [b"%d" % n for n in range(8)]


def test_unreachable_writers_are_reported_within_the_timeout() -> None:
    """The error comes within the timeout."""
    addresses = [f"127.0.0.1:{fixed_port()}" for _ in range(2)]
    with Producer(addresses, timeout_s=0.5) as producer, pytest.raises(WriterUnreachableError):
        producer.send("t", b"x")


def test_flush_waits_for_messages_that_move_to_another_writer(
    pair: tuple[FakeWriter, FakeWriter], producer: Producer
) -> None:
    """The message moves from one writer to the other."""
    pair[0].on_entry = refuse("DISK_FULL", [])  # type: ignore[assignment]
    futures: list[Future[SendResult]] = [producer.send_async("t", b"x") for _ in range(100)]
    assert producer.flush(5)
    assert all(future.done() for future in futures)
