"""Deleted topics over the real services: unknown to every reader at once, and new after they are created again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.built_store import PRE_BLANK, BuiltStore
from tests.integration.query.test_pull_http import in_background
from tests.query_server import serve_query
from tidemark.client import Consumer, Producer, Query, SendResult, TopicQueue
from tidemark.errors import OffsetTooSmallError, TopicNotFoundError
from tidemark.local.local_stack import LocalStack

pytestmark = pytest.mark.integration

OLD = 5
FORMS = ("application/json", "application/x-ndjson", "application/octet-stream", "application/vnd.apache.arrow.stream")
QUEUE_TYPES = pytest.mark.parametrize("queue_type", ["SimpleCQ", "BatchCQ"])


@pytest.fixture(scope="module")
def readers(stack: LocalStack) -> Iterator[list[httpx.Client]]:
    """The stack's query process, and a second one over the same store."""
    with serve_query(stack.data) as second, httpx.Client(base_url=stack.query_url, timeout=60) as first:
        yield [first, second]


@pytest.fixture
def producer(stack: LocalStack) -> Iterator[Producer]:
    with Producer(stack.writer_address) as producer:
        yield producer


def visible(client: httpx.Client, topic: str, end: int) -> None:
    """Wait until the queue's end is visible."""
    deadline = time.monotonic() + 60
    while client.get(f"/v1/topics/{topic}/queues/0").json()["max_offset"] < end:
        assert time.monotonic() < deadline, "the messages did not become visible"
        time.sleep(0.05)


def filled(producer: Producer, readers: list[httpx.Client], queue_type: str) -> tuple[str, SendResult]:
    """Create a topic of one queue with OLD visible messages; return its name and the answer to the last send."""
    topic = f"gone-{uuid.uuid4().hex[:8]}"
    producer.topics.create(topic, queues=1, attributes={"queue.type": queue_type})
    for number in range(OLD):
        sent = producer.send(topic, f"old {number}".encode(), key="k", queue_id=0)
    for client in readers:
        visible(client, topic, OLD)
    return topic, sent


def statuses(client: httpx.Client, topic: str, message_id: str) -> dict[str, tuple[int, str]]:
    """Ask for the topic in every way; return status and reason of each answer."""
    messages = f"/v1/topics/{topic}/queues/0/messages"
    asked = {
        "topic": client.get(f"/v1/topics/{topic}"),
        "queue": client.get(f"/v1/topics/{topic}/queues/0"),
        "time": client.get(f"/v1/topics/{topic}/queues/0/offset", params={"time": 0}),
        "key": client.get(f"/v1/topics/{topic}/messages", params={"key": "k"}),
        "scan": client.get(f"/v1/topics/{topic}/messages"),
        "id": client.get(f"/v1/messages/{message_id}"),
        "peer": client.get(messages, params={"offset": 0, "semantics": "rocketmq"}),
    }
    asked |= {form: client.get(messages, params={"offset": 0}, headers={"Accept": form}) for form in FORMS}
    return {name: (answer.status_code, answer.json().get("reason", "")) for name, answer in asked.items()}


def many_queues(client: httpx.Client, topic: str) -> list[tuple[str, int]]:
    queues = [{"topic": topic, "queue_id": 0, "offset": 0}]
    answers = client.post("/v1/pull", json={"queues": queues}).json()["answers"]
    return [(answer.get("reason", ""), len(answer.get("messages", ()))) for answer in answers]


@QUEUE_TYPES
def test_a_deleted_topic_is_unknown_to_every_query_process_immediately(
    stack: LocalStack, producer: Producer, readers: list[httpx.Client], queue_type: str
) -> None:
    topic, sent = filled(producer, readers, queue_type)
    waiting = {"offset": OLD, "wait_ms": 25_000}
    polls = [
        in_background(lambda client=client: client.get(f"/v1/topics/{topic}/queues/0/messages", params=waiting))
        for client in readers
    ]
    time.sleep(0.5)  # both requests wait
    producer.topics.delete(topic)
    deleted_at = time.monotonic()
    for client in readers:
        found = statuses(client, topic, sent.offset_message_ids[0])
        assert found.pop("id") == (404, "NOT_FOUND")
        assert set(found.values()) == {(404, "TOPIC_NOT_FOUND")}, found
        assert many_queues(client, topic) == [("TOPIC_NOT_FOUND", 0)]
        assert topic not in [one["topic"] for one in client.get("/v1/topics").json()["topics"]]
    for thread, answers in polls:
        thread.join()
        assert answers[0][0].json()["reason"] == "TOPIC_NOT_FOUND"
    assert time.monotonic() - deleted_at < 20, "the waiting requests were answered only at their own deadline"
    with Consumer(queues=[TopicQueue(topic, 0)], store=stack.data) as consumer, pytest.raises(TopicNotFoundError):
        consumer.poll(1)


@QUEUE_TYPES
def test_a_recreated_topic_begins_at_its_next_offset(
    stack: LocalStack, producer: Producer, readers: list[httpx.Client], queue_type: str
) -> None:
    """The pipeline has not dropped the old queue files yet."""
    topic, old = filled(producer, readers, queue_type)
    group = f"g-{topic}"
    readers[0].put(f"/v1/groups/{group}/topics/{topic}/queues/0/offset", json={"offset": 3}).raise_for_status()
    producer.topics.delete(topic)
    producer.topics.create(topic, queues=1, attributes={"queue.type": queue_type})

    def facts(client: httpx.Client) -> dict[str, Any]:
        queue = client.get(f"/v1/topics/{topic}/queues/0").json()
        page = client.get(f"/v1/topics/{topic}/queues/0/messages", params={"offset": "earliest"})
        at = client.get(f"/v1/topics/{topic}/queues/0/offset", params={"time": 0}).json()
        lag = client.get(f"/v1/groups/{group}").json()["queues"][0]
        return {
            "bounds": (queue["min_offset"], queue["max_offset"]),
            "page": (page.status_code, [message["queue_offset"] for message in page.json().get("messages", ())]),
            "below": client.get(f"/v1/topics/{topic}/queues/0/messages", params={"offset": OLD - 1}).status_code,
            "time": at["offset"],
            "keys": [
                message["queue_offset"]
                for message in client.get(f"/v1/topics/{topic}/messages", params={"key": "k"}).json()["messages"]
            ],
            "lag": (lag["offset"], lag["below_min"], lag["lag"]),
            "old id": client.get(f"/v1/messages/{old.offset_message_ids[0]}").status_code,
        }

    empty = {
        "bounds": (OLD, OLD),
        "page": (200, []),
        "below": 410,
        "time": OLD,
        "keys": [],
        "lag": (OLD, 0, 0),
        "old id": 404,
    }
    assert [facts(client) for client in readers] == [empty, empty]
    with Query(stack.query_url) as query, pytest.raises(OffsetTooSmallError):
        query.pull(topic, 0, 0)
    places: list[dict[str, Any]] = [{"url": stack.query_url}, {"store": stack.data}]
    consumers = [Consumer(topic, start="earliest", out_of_range="error", **place) for place in places[:1]]
    consumers += [Consumer(queues=[TopicQueue(topic, 0)], start="earliest", out_of_range="error", **places[1])]
    consumers += [Consumer(topic, group=group, url=stack.query_url, out_of_range="error")]
    consumers += [Consumer(topic, start=2, url=stack.query_url, out_of_range="error")]
    consumers += [Consumer(queues=[TopicQueue(topic, 0)], start=2, out_of_range="error", store=stack.data)]
    for consumer in consumers:
        assert consumer.poll(0.5) == []

    producer.send(topic, b"new", key="k", queue_id=0)
    keys = [OLD] if queue_type == "SimpleCQ" else []  # the index does not have the keys inside an inner batch
    for client in readers:
        visible(client, topic, OLD + 1)
        found = facts(client)
        assert found == empty | {"bounds": (OLD, OLD + 1), "page": (200, [OLD]), "keys": keys, "lag": (OLD, 0, 1)}
    for consumer in consumers:
        with consumer:
            assert [(message.queue_offset, message.body) for message in consumer.poll(30)] == [(OLD, b"new")]


def test_a_reader_without_files_finds_a_queue_that_begins_above_0(tmp_path: Path) -> None:
    """Between the removal of a deleted topic's files and the first file of its successor."""
    store = BuiltStore(tmp_path)
    store.topic("orders")
    store.publish()
    with serve_query(store.root) as client:
        queue = "/v1/topics/orders/queues/0"
        assert client.get(queue).json()["max_offset"] == 0
        store.next["orders", 0] = 70
        store.write_units("orders", 0, 50, PRE_BLANK * 20)
        store.append("orders")
        store.publish()
        page = client.get(f"{queue}/messages", params={"offset": 70, "wait_ms": 10_000}).json()
        assert [message["queue_offset"] for message in page["messages"]] == [70]
