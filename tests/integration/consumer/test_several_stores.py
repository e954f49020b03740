"""One consumer of topics that are spread over two stores: real services, over both wires."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.fixed_ports import fixed_port
from tests.integration.several_stores import Pair
from tests.waiting import until
from tidemark.client import AsyncConsumer, Consumer, Producer, Query, ReceivedMessage, StoreQueue, TopicQueue, Topics
from tidemark.errors import ArgumentIllegalError, TopicNotFoundError, UnavailableError
from tidemark.local.local_stack import QUERY

pytestmark = pytest.mark.integration
over_both_wires = pytest.mark.usefixtures("wire")

TIMEOUT_S = 30.0


def read(consumer: Consumer, count: int) -> list[ReceivedMessage]:
    """Return *count* messages."""
    messages: list[ReceivedMessage] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(messages) < count:
        assert time.monotonic() < deadline, messages
        messages += consumer.poll(1.0)
    return messages


@over_both_wires
@pytest.mark.parametrize("as_text", [True, False])
def test_messages_of_both_stores_come_with_their_stores(pair: Pair, as_text: bool) -> None:
    pair.send(0, b"a0", b"a1")
    pair.send(1, b"b0", b"b1", b"b2")
    with Consumer(pair.topic, url=",".join(pair.urls) if as_text else pair.urls) as consumer:
        messages = read(consumer, 5)
        assert consumer.poll(0) == []
        later = threading.Timer(0.3, pair.send, (1, b"b3"))
        later.start()
        assert [message.body for message in read(consumer, 1)] == [b"b3"], "a wait ends for either store"
        later.join()
    found = {(message.body, message.store) for message in messages}
    assert found == {(body, pair.urls[body[:1] == b"b"]) for body in (b"a0", b"a1", b"b0", b"b1", b"b2")}
    for store in pair.urls:
        offsets = [message.queue_offset for message in messages if message.store == store]
        assert offsets == sorted(offsets)
    assert messages[0].queue == StoreQueue(pair.topic, 0, messages[0].store)
    assert pickle.loads(pickle.dumps(messages[0])) == messages[0]


def test_a_group_has_members_and_offsets_in_each_store(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"0", b"1", b"2")
    with Consumer(pair.topic, url=pair.urls, group=pair.topic, auto_commit=False) as consumer:
        messages = read(consumer, 6)
        assert set(consumer.lag().values()) == {0}
        first = StoreQueue(pair.topic, 0, pair.urls[0])
        consumer.commit({first: 2})
        assert committed(pair)[0][0] == 2
        assert committed(pair)[1].get(0) != 3
        consumer.commit_async().result(TIMEOUT_S)
    assert [offsets[0] for offsets in committed(pair)] == [3, 3]
    pair.send(1, b"3")
    with Consumer(pair.topic, url=pair.urls, group=pair.topic) as consumer:
        (message,) = read(consumer, 1)
        assert (message.body, message.store) == (b"3", pair.urls[1])
    assert Counter(message.body for message in messages) == {b"0": 2, b"1": 2, b"2": 2}


def committed(pair: Pair) -> list[dict[int, int]]:
    """Return the group's offsets of the topic in each store, by queue."""
    found = []
    for server in pair.servers:
        with server.query() as query:
            queues = query.get(f"/v1/groups/{pair.topic}")["queues"]
        found.append({one["queue_id"]: one["offset"] for one in queues if one["topic"] == pair.topic})
    return found


def test_two_consumers_of_a_group_share_the_queues_of_each_store(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"0")
    with (
        Consumer(pair.topic, url=pair.urls, group=pair.topic) as first,
        Consumer(pair.topic, url=pair.urls, group=pair.topic) as second,
    ):

        def is_shared() -> bool:
            for consumer in (first, second):
                consumer.poll(0.05)
            shares = [first.assignment, second.assignment]
            by_store = [
                [sum(1 for queue in share if isinstance(queue, StoreQueue) and queue.store == url) for share in shares]
                for url in pair.urls
            ]
            return not shares[0] & shares[1] and by_store == [[2, 2], [2, 2]]

        until(is_shared)


def test_positions_belong_to_a_queue_of_a_store(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"0", b"1")
    with Consumer(pair.topic, url=pair.urls) as consumer:
        read(consumer, 4)
        first, second = (StoreQueue(pair.topic, 0, url) for url in pair.urls)
        assert consumer.position(second) == 2
        consumer.seek(second, 1)
        assert [(message.body, message.store) for message in read(consumer, 1)] == [(b"1", pair.urls[1])]
        consumer.pause(second)
        consumer.seek_all("earliest")
        assert {message.store for message in read(consumer, 2)} == {pair.urls[0]}
        assert (consumer.position(first), consumer.position(second)) == (2, 0)
        consumer.resume(second)
        assert {message.store for message in read(consumer, 2)} == {pair.urls[1]}
        with pytest.raises(KeyError, match=r"name one, as message\.queue does"):
            consumer.seek((pair.topic, 0), 0)
        with pytest.raises(KeyError, match="is not a store of this consumer"):
            consumer.seek(StoreQueue(pair.topic, 0, "http://other"), 0)
        with pytest.raises(ValueError, match="use Query"):
            consumer.pull(pair.topic, 0, 0)


def test_queues_may_name_a_store(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"0", queue_id=0)
        pair.send(store, b"1", queue_id=1)
    chosen = [TopicQueue(pair.topic, 0), StoreQueue(pair.topic, 1, pair.urls[1])]
    with Consumer(queues=chosen, url=pair.urls) as consumer:
        found = {(message.body, message.store) for message in read(consumer, 3)}
        assert found == {(b"0", pair.urls[0]), (b"0", pair.urls[1]), (b"1", pair.urls[1])}
        assert len(consumer.assignment) == 3


def test_a_table_names_the_stores(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"0", b"1")
    rows: list[tuple[str, int, int]] = []
    with Consumer(pair.topic, url=pair.urls) as consumer:
        deadline = time.monotonic() + TIMEOUT_S
        while len(rows) < 4:
            assert time.monotonic() < deadline
            table = consumer.poll_table(1.0)
            if table is not None:
                columns = [table.column(name).to_pylist() for name in ("store", "queue_id", "queue_offset")]
                rows += zip(*columns, strict=True)
        assert consumer.poll_table(0) is None
    assert sorted(rows) == sorted((url, 0, offset) for url in pair.urls for offset in (0, 1))


@over_both_wires
def test_a_failed_message_is_retried_in_its_store(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"%d" % store)
    failed: list[ReceivedMessage] = []
    again: list[ReceivedMessage] = []
    stop = threading.Event()

    def handle(message: ReceivedMessage) -> None:
        if message.reconsume_times == 0:
            failed.append(message)
            raise ValueError("not now")
        again.append(message)
        if len(again) == 2:
            stop.set()

    with Consumer(pair.topic, url=pair.urls, group=pair.topic) as consumer, ThreadPoolExecutor(1) as thread:
        ended = threading.Event()
        ended.set()
        consumer.consume(handle, writer=pair.writers, stop=ended)
        thread.submit(
            consumer.consume, handle, writer=pair.writers, first_delay_level=1, stop=stop, on_error=lambda *_: None
        ).result(TIMEOUT_S)
    assert sorted((message.body, message.store) for message in again) == sorted(
        (message.body, message.store) for message in failed
    )
    assert {(message.body, message.store) for message in again} == {(b"0", pair.urls[0]), (b"1", pair.urls[1])}
    assert all(sum(offsets.values()) == 1 for offsets in committed(pair)), "handled messages are committed"


def test_each_store_needs_a_writer(pair: Pair) -> None:
    with (
        Consumer(pair.topic, url=pair.urls, group=pair.topic) as consumer,
        pytest.raises(ArgumentIllegalError, match="1 addresses for 2 stores"),
    ):
        consumer.consume(lambda message: None, writer=pair.servers[0].writer_address)


@pytest.mark.parametrize("is_group", [False, True])
def test_a_topic_may_be_in_one_store_only(pair: Pair, is_group: bool) -> None:
    """It is found within seconds when the other store gets it, too. A topic that is in no store is an error."""
    pair.send(0, b"0")
    with Consumer(pair.topic, url=pair.urls, group=pair.topic if is_group else None) as consumer:
        assert [message.store for message in read(consumer, 1)] == [pair.urls[0]]
        assert consumer.poll(0.2) == []
        pair.send(1, b"1")
        assert [message.store for message in read(consumer, 1)] == [pair.urls[1]]
    with (
        Consumer(["nowhere", pair.topic], url=pair.urls) as consumer,
        pytest.raises(TopicNotFoundError, match="nowhere is in none of the 2 stores"),
    ):
        read(consumer, 3)


def test_a_topic_that_is_deleted_in_every_store_is_reported(pair: Pair) -> None:
    """Without it in one of them, the consumer reads the other."""
    for store in (0, 1):
        pair.send(store, b"0")
    with Consumer(pair.topic, url=pair.urls) as consumer:
        read(consumer, 2)
        delete(pair, 0)
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            assert consumer.poll(0.2) == []
        pair.send(1, b"1")
        assert [message.body for message in read(consumer, 1)] == [b"1"]
        delete(pair, 1)
        with pytest.raises(TopicNotFoundError, match=pair.topic):
            read(consumer, 1)


def delete(pair: Pair, store: int) -> None:
    with Topics(pair.servers[store].writer_address) as topics:
        topics.delete(pair.topic)


def test_a_store_that_does_not_answer_does_not_stop_the_other(pair: Pair) -> None:
    pair.send(0, b"0", b"1")
    with Consumer(pair.topic, url=[pair.urls[0], f"http://127.0.0.1:{fixed_port()}"], max_messages=1) as consumer:
        assert [message.body for message in (*consumer.poll(TIMEOUT_S), *consumer.poll(TIMEOUT_S))] == [b"0", b"1"]
        with pytest.raises(UnavailableError):
            consumer.poll(0.2)
        pair.send(0, b"2")
        until(lambda: _polled(consumer) == [b"2"])


def _polled(consumer: Consumer) -> list[bytes]:
    try:
        return [message.body for message in consumer.poll(0.2)]
    except UnavailableError:
        return []


@over_both_wires
def test_an_outage_of_one_store_is_survived(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"0")
    with Consumer(pair.topic, url=pair.urls, group=pair.topic) as consumer:
        read(consumer, 2)
        stack = pair.servers[1].stack
        stack.services[QUERY].stop(TIMEOUT_S)
        try:
            pair.send(0, b"1")
            assert [message.body for message in read(consumer, 1)] == [b"1"]
        finally:
            stack.start_service(QUERY)
        pair.send(1, b"2")
        assert [message.body for message in read(consumer, 1)] == [b"2"]


def test_asyncio(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"0")

    async def run() -> None:
        async with AsyncConsumer(pair.topic, url=pair.urls) as consumer:
            messages = [await anext(consumer.__aiter__()) for _ in range(2)]
            assert {message.store for message in messages} == set(pair.urls)
            await consumer.seek(messages[0].queue, "earliest")
            assert [message.store for message in await consumer.poll()] == [messages[0].store]

    asyncio.run(asyncio.wait_for(run(), TIMEOUT_S))


def test_callbacks_name_the_stores(pair: Pair) -> None:
    for store in (0, 1):
        pair.send(store, b"0", b"1")
    assigned: set[TopicQueue] = set()

    def start_at_one(consumer: Consumer, queues: frozenset[TopicQueue]) -> None:
        assigned.update(queues)
        for queue in queues:
            if queue.queue_id == 0:
                consumer.seek(queue, 1)

    with Consumer(pair.topic, url=pair.urls, on_assigned=start_at_one) as consumer:
        assert [message.body for message in read(consumer, 2)] == [b"1", b"1"]
        assert assigned == consumer.assignment
    assert {queue.store for queue in assigned if isinstance(queue, StoreQueue)} == set(pair.urls)


def test_contradictions_are_refused(pair: Pair) -> None:
    with pytest.raises(ValueError, match="url names 2 stores"):
        Consumer("t", url=pair.urls, store="/data")
    with pytest.raises(ValueError, match="url names only"):
        Consumer(queues=[StoreQueue("t", 0, "http://other")], url=pair.urls)
    with pytest.raises(ValueError, match="names 2 stores"):
        Query(",".join(pair.urls))


def test_a_producer_of_both_stores_and_the_consumer(pair: Pair) -> None:
    with Producer(pair.writers) as producer:
        results = [producer.send(pair.topic, b"%d" % number) for number in range(20)]
    assert len({result.writer for result in results}) == 2
    with Consumer(pair.topic, url=pair.urls) as consumer:
        bodies = sorted(int(message.body) for message in read(consumer, 20))
    assert bodies == list(range(20))
