"""Retries over REST, through the real services."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tidemark.client import Message, Producer
from tidemark.local.local_stack import LocalStack

pytestmark = pytest.mark.integration


@pytest.fixture
def producer(stack: LocalStack) -> Iterator[Producer]:
    with Producer(stack.writer_address) as producer:
        yield producer


@pytest.fixture
def client(stack: LocalStack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.query_url, timeout=60) as client:
        yield client


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


def visible(client: httpx.Client, topic: str, count: int) -> list[dict[str, Any]]:
    """Wait for *count* messages in all queues of a topic; return them, with their queue ids."""
    deadline = time.monotonic() + 90
    while True:
        answer = client.get(f"/v1/topics/{topic}/messages", params={"limit": 1000, "body_encoding": "utf8"})
        messages: list[dict[str, Any]] = answer.json().get("messages", [])
        if len(messages) >= count:
            return messages
        assert time.monotonic() < deadline, f"{topic} has {len(messages)} of {count} messages"
        time.sleep(0.1)


def filled(producer: Producer, client: httpx.Client, queue_type: str, count: int) -> list[dict[str, Any]]:
    topic = f"t-{uuid.uuid4().hex[:8]}"
    producer.topics.create(topic, queues=1, attributes={"queue.type": queue_type})
    producer.send_batch([Message(topic, f"m{number}".encode(), tag="A") for number in range(count)], queue_id=0)
    return [{"topic": topic, **message} for message in visible(client, topic, count)]


def place_of(message: dict[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in ("topic", "queue_id", "queue_offset")}


def retry(client: httpx.Client, group: str, messages: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    answer = client.post(f"/v1/groups/{group}/retry", json={"messages": messages, **more})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    assert len(results) == len(messages)
    return results


@pytest.mark.parametrize("queue_type", ["SimpleCQ", "BatchCQ"])
def test_each_message_is_sent_back_to_its_group_once(
    producer: Producer, client: httpx.Client, group: str, queue_type: str
) -> None:
    """It is named by position or by id; a repeated request stores no second copy."""
    messages = filled(producer, client, queue_type, 4)
    suffixes = ["", "", "", ""] if queue_type == "SimpleCQ" else [f"-{number}" for number in range(4)]
    ids = [f"{message['offset_msg_id']}{suffix}" for message, suffix in zip(messages, suffixes, strict=True)]
    asked = [*map(place_of, messages[:2]), *({"message_id": text} for text in ids[2:])]
    results = retry(client, group, asked, delay_level=1)
    assert [result["problem"] for result in results] == [None] * 4
    assert [place_of(result) for result in results] == [place_of(message) for message in messages]
    assert {(one["sent_back"]["topic"], one["sent_back"]["dead_letter"]) for one in results} == {
        (f"%RETRY%{group}", False)
    }
    again = retry(client, group, asked, delay_level=1)
    assert [result["sent_back"]["duplicate"] for result in again] == [True] * 4
    copies = visible(client, f"%25RETRY%25{group}", 4)
    assert sorted(copy["body"] for copy in copies) == ["m0", "m1", "m2", "m3"]
    assert {(copy["reconsume_times"], copy["tag"], copy["properties"]["RETRY_TOPIC"]) for copy in copies} == {
        (1, "A", messages[0]["topic"])
    }


def test_a_message_without_attempts_left_is_a_dead_letter(producer: Producer, client: httpx.Client, group: str) -> None:
    messages = filled(producer, client, "SimpleCQ", 2)
    results = retry(client, group, [place_of(messages[0])], max_reconsume_times=0)
    results += retry(client, group, [place_of(messages[1])], delay_level=-1)
    assert [result["sent_back"]["dead_letter"] for result in results] == [True, True]
    copies = visible(client, f"%25DLQ%25{group}", 2)
    assert sorted(copy["body"] for copy in copies) == ["m0", "m1"]


def test_each_message_has_its_own_result(producer: Producer, client: httpx.Client, group: str) -> None:
    """A missing message does not affect the others."""
    first, *_ = messages = filled(producer, client, "SimpleCQ", 2)
    [batch, _] = filled(producer, client, "BatchCQ", 2)
    asked = [
        {**place_of(first), "queue_offset": 77},
        {**place_of(first), "queue_id": 9},
        {**place_of(first), "topic": "no-such-topic"},
        {"message_id": "u1"},
        {"message_id": batch["offset_msg_id"]},
        {"message_id": f"{batch['offset_msg_id']}-2"},
        place_of(messages[1]),
    ]
    results = retry(client, group, asked, delay_level=1)
    assert [(result["problem"] or {}).get("reason") for result in results] == [
        "NOT_FOUND", "QUEUE_ID_ILLEGAL", "TOPIC_NOT_FOUND", "ARGUMENT_ILLEGAL", "ARGUMENT_ILLEGAL", "NOT_FOUND", None,
    ]  # fmt: skip
    assert [copy["body"] for copy in visible(client, f"%25RETRY%25{group}", 1)] == ["m1"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"topic": "t", "queue_id": 0}]}, "queue_offset together"),
        ({"messages": [{"topic": "t", "queue_id": 0, "queue_offset": 1, "message_id": "x"}]}, "message_id alone"),
        ({"messages": [{"message_id": "x"}], "delay_level": 19}, "delay_level"),
        ({"messages": [{"message_id": "x"}], "delay_level": -2}, "delay_level"),
        ({"messages": [{"message_id": "x"}], "max_reconsume_times": -1}, "max_reconsume_times"),
        ({"messages": [{"message_id": "x"}] * 257}, "at most 256"),
    ],
)
def test_a_malformed_retry_request_is_refused(client: httpx.Client, content: dict[str, Any], what: str) -> None:
    answer = client.post("/v1/groups/g/retry", json=content)
    assert (answer.status_code, answer.json()["reason"]) == (422, "ARGUMENT_ILLEGAL")
    assert what in answer.json()["detail"]
