"""A consumer of hundreds of queues: few requests for all of them, each queue in order, nothing repeated."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query
from tidemark.client import Consumer, Query, ReceivedMessage, TopicQueue
from tidemark.errors import OffsetOutOfRangeError, TopicNotFoundError
from tidemark.format.record import decode_record

pytestmark = pytest.mark.integration
QUEUES, EACH = 300, 9


def bodies_of(queue_id: int) -> list[bytes]:
    return [b"%d-%d" % (queue_id, number) for number in range(EACH)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BuiltStore:
    """Write a topic of 300 queues, nine interleaved messages each, tag A or B."""
    store = BuiltStore(tmp_path_factory.mktemp("many") / "store")
    store.topic("many", queues=QUEUES)
    for number in range(EACH):
        for queue_id in range(QUEUES):
            store.append("many", bodies_of(queue_id)[number], {"TAGS": "AB"[number % 2]}, queue_id=queue_id)
    store.publish()
    return store


@pytest.fixture
def service(wire: str, store: BuiltStore) -> Iterator[httpx.Client]:
    """Serve with at most ten waiting requests per client, fewer than there are queues.

    In remoting frames each queue has a request of its own, so that the limit must be as large as their number.
    """
    most = 10 if wire == "grpc" else QUEUES
    with serve_query(store.root, query_max_waiting_per_client=most, query_remoting_listen="127.0.0.1:0") as client:
        yield client


def poll_all(consumer: Consumer) -> None:
    while consumer.poll(10):
        pass


def requests(service: httpx.Client, path: str) -> float:
    lines = service.get("/metrics").text.splitlines()
    counts = [line.rsplit(" ", 1) for line in lines if line.startswith("tidemark_query_requests_total")]
    return sum(float(value) for name, value in counts if f'path="{path}"' in name)


@pytest.mark.parametrize("max_bytes", [None, 1, 5_000])
def test_every_message_is_delivered_once_and_in_order(wire: str, service: httpx.Client, max_bytes: int | None) -> None:
    """The size limit of a response does not matter."""
    got: dict[int, list[bytes]] = {queue_id: [] for queue_id in range(QUEUES)}
    with Consumer("many", url=str(service.base_url), max_bytes=max_bytes) as consumer:
        while sum(map(len, got.values())) < QUEUES * EACH:
            messages = consumer.poll(10, max_messages=500)
            assert messages, "no further message came"
            for message in messages:
                got[message.queue_id].append(message.body)
        assert consumer.lag() == dict.fromkeys((TopicQueue("many", queue_id) for queue_id in range(QUEUES)), 0)
    assert got == {queue_id: bodies_of(queue_id) for queue_id in range(QUEUES)}
    if wire == "grpc" and max_bytes is None:
        assert requests(service, "/v1/pull") < 30
        assert requests(service, "/v1/topics/{topic}/queues/{queue_id}/messages") == 0


def test_polled_tables_hold_the_messages_of_many_queues(service: httpx.Client) -> None:
    tables: list[pa.Table] = []
    with Consumer("many", url=str(service.base_url), tag="B") as consumer:
        while sum(table.num_rows for table in tables) < QUEUES * (EACH // 2):
            table = consumer.poll_table(10)
            assert table is not None, "no further message came"
            tables.append(table)
    whole = pa.concat_tables(tables).sort_by([("queue_id", "ascending"), ("queue_offset", "ascending")])
    assert whole["body"].to_pylist() == [body for queue_id in range(QUEUES) for body in bodies_of(queue_id)[1::2]]


def test_a_waiting_poll_is_answered_by_any_queue(tmp_path: Path) -> None:
    """This works repeatedly, without continual requests."""
    store = BuiltStore(tmp_path / "store")
    store.topic("many", queues=QUEUES)
    store.append("many", b"first")
    store.publish()
    with (
        serve_query(store.root, query_max_waiting_per_client=10) as service,
        Consumer("many", url=str(service.base_url), start="latest") as consumer,
    ):
        while consumer.poll(0.3):
            pass
        before = requests(service, "/v1/pull")
        for queue_id in (7, 299, 7, 120):
            body = b"to %d" % queue_id

            def append(queue_id: int = queue_id, body: bytes = body) -> None:
                store.append("many", body, queue_id=queue_id)
                store.publish()

            timer = threading.Timer(0.2, append)
            timer.start()
            began = time.monotonic()
            assert [message.body for message in consumer.poll(20)] == [body]
            assert time.monotonic() - began < 5
            timer.join()
        assert requests(service, "/v1/pull") - before < 20


def test_an_out_of_range_queue_does_not_stop_the_others(service: httpx.Client) -> None:
    """It restarts at the configured position, or its error is raised."""
    queues = [TopicQueue("many", queue_id) for queue_id in range(100)]
    with Consumer(queues=queues, url=str(service.base_url), out_of_range="earliest") as consumer:
        consumer.poll(0.1)
        consumer.seek_all(EACH)
        consumer.seek(queues[50], 1_000_000)
        got: list[ReceivedMessage] = []
        while len(got) < EACH:
            messages = consumer.poll(10)
            assert messages
            got += messages
    assert [message.body for message in got] == bodies_of(50)
    with Consumer(queues=queues, url=str(service.base_url)) as consumer:
        consumer.seek(queues[50], 1_000_000)
        with pytest.raises(OffsetOutOfRangeError) as refused:
            poll_all(consumer)
        assert refused.value.facts["queue_id"] == 50


def test_a_seek_discards_pulls_in_flight(service: httpx.Client) -> None:
    """This includes a queue that is one of many in a request."""
    queues = [TopicQueue("many", queue_id) for queue_id in range(100)]
    with Consumer(queues=queues, url=str(service.base_url)) as consumer:
        consumer.seek_all(EACH)
        assert consumer.poll(0.2) == []  # all of them wait now
        consumer.seek(queues[3], 5)
        assert [message.body for message in consumer.poll(10)] == bodies_of(3)[5:]
        consumer.pause(queues[4])
        consumer.seek(queues[4], 5)
        assert consumer.poll(0.3) == []
        consumer.resume(queues[4])
        assert [message.body for message in consumer.poll(10)] == bodies_of(4)[5:]


# -- Query ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_bytes", [1, 5_000, 4 << 20])
def test_record_pages_cover_each_of_many_queues_once(service: httpx.Client, max_bytes: int) -> None:
    """Each queue is read from its offset to its end, once."""
    found: dict[int, list[bytes]] = {}
    with Query(str(service.base_url)) as query:
        asked = {("many", queue_id): queue_id % EACH for queue_id in range(QUEUES)}
        for queue, page in query.record_pages_of(asked, max_bytes=max_bytes):
            data = page.data
            while data:
                size = int.from_bytes(data[:4], "big")
                found.setdefault(queue.queue_id, []).append(decode_record(bytes(data[:size])).body)
                data = data[size:]
    assert found == {queue_id: bodies_of(queue_id)[queue_id % EACH :] for queue_id in range(QUEUES)}


def test_tables_of_covers_each_of_many_queues(service: httpx.Client) -> None:
    with Query(str(service.base_url)) as query:
        asked = {("many", queue_id): "earliest" for queue_id in range(QUEUES)}
        found = {queue.queue_id: table["body"].to_pylist() for queue, table in query.tables_of(asked, tag="A")}
    assert found == {queue_id: bodies_of(queue_id)[::2] for queue_id in range(QUEUES)}


def test_a_queue_that_is_refused_is_an_error(service: httpx.Client) -> None:
    with Query(str(service.base_url)) as query, pytest.raises(TopicNotFoundError):
        list(query.record_pages_of({("many", 0): 0, ("nope", 0): 0}))
