"""The two sides that answer queries about a store, in one form: RocketMQ's client at a broker, and REST.

Answers have the form of RocketMQ's client; the bounds that it adds to a message's properties are left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import httpx

from .history import Queue, Reading
from .messages import TOPICS
from .rocket_client import PULL_MOST, Answer, RocketClient

_CLIENT_STATUS = {  # docs/format.md §14: a client's translation of a broker's answer
    "FOUND": "FOUND",
    "NO_MATCHED_MESSAGE": "NO_MATCHED_MSG",
    "MESSAGE_WAS_REMOVING": "NO_MATCHED_MSG",
    "OFFSET_OVERFLOW_ONE": "NO_NEW_MSG",
    "OFFSET_FOUND_NULL": "NO_NEW_MSG",
    "NO_MESSAGE_IN_QUEUE": "NO_NEW_MSG",
}
_BOUNDS = ("MIN_OFFSET", "MAX_OFFSET")
_INNER_BATCH = 0xC0  # both bits: an element of an inner batch, unwrapped by the client


def is_inner(message: Answer) -> bool:
    """Return True if it came in an inner batch: such messages have no place, id and index entry of their own."""
    return bool(message["sys_flag"] & _INNER_BATCH == _INNER_BATCH)


class Side(Protocol):
    """A side that answers queries."""

    def bounds(self, topics: Iterable[str]) -> dict[Queue, tuple[int, int]]:
        """Return minimum and maximum offset of each queue."""

    def pull(self, queue: Queue, offset: int, most: int, tags: str) -> Answer:
        """Return {status, next_offset, messages}."""

    def offset_by_time(self, queue: Queue, time_ms: int) -> int:
        """Return the lower boundary."""

    def query_key(self, topic: str, key: str) -> list[int]:
        """Return ascending physical offsets."""

    def view(self, topic: str, offset_message_id: str) -> Answer:
        """Return a message by its offset id."""


def read_all(side: Side, topics: Iterable[str] = TOPICS) -> Reading:
    """Return every message of every queue."""
    reading: Reading = {}
    for queue, (first, end) in side.bounds(topics).items():
        messages, offset = reading.setdefault(queue, []), first
        while offset < end:
            answer = side.pull(queue, offset, PULL_MOST, "*")
            messages += answer["messages"]
            assert answer["next_offset"] > offset, f"{queue}: no progress from {offset}"
            offset = answer["next_offset"]
    return reading


class BrokerSide:
    """A broker, queried through its own client."""

    def __init__(self, client: RocketClient) -> None:
        self._client = client
        for topic in TOPICS:
            client.wait_until_known(topic)

    def bounds(self, topics: Iterable[str]) -> dict[Queue, tuple[int, int]]:
        return {
            (topic, queue["queue_id"]): (queue["min_offset"], queue["max_offset"])
            for topic in topics
            for queue in self._client.queues(topic)
        }

    def pull(self, queue: Queue, offset: int, most: int, tags: str) -> Answer:
        answer = self._client.pull(*queue, offset, most=most, tags=tags)
        messages = [_without_bounds(message) for message in answer["messages"]]
        return {"status": answer["status"], "next_offset": answer["next_offset"], "messages": messages}

    def offset_by_time(self, queue: Queue, time_ms: int) -> int:
        return self._client.offset_by_time(*queue, time_ms)

    def query_key(self, topic: str, key: str) -> list[int]:
        return self._client.query_key(topic, key)

    def view(self, topic: str, offset_message_id: str) -> Answer:
        return _without_bounds(self._client.view(topic, offset_message_id))


def _without_bounds(message: Answer) -> Answer:
    properties = {name: value for name, value in message["properties"].items() if name not in _BOUNDS}
    return {"offset_message_id": None, **message, "properties": properties}  # an element of an inner batch has none


class RestSide:
    """Tidemark's query service, with semantics=rocketmq."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def _get(self, path: str, **arguments: Any) -> Answer:
        response = self._http.get(f"/v1/{path}", params=arguments)
        assert response.status_code == 200, response.text
        answer: Answer = response.json()
        return answer

    def bounds(self, topics: Iterable[str]) -> dict[Queue, tuple[int, int]]:
        found: dict[Queue, tuple[int, int]] = {}
        for topic in topics:
            for queue_id in range(TOPICS[topic].queues):
                answer = self._get(f"topics/{topic}/queues/{queue_id}")
                found[topic, queue_id] = answer["min_offset"], answer["max_offset"]
        return found

    def pull(self, queue: Queue, offset: int, most: int, tags: str) -> Answer:
        answer = self._get(
            f"topics/{queue[0]}/queues/{queue[1]}/messages",
            offset=offset,
            max_messages=most,
            max_bytes=64 << 20,
            tag=tags,
            semantics="rocketmq",
            body_encoding="base64",
        )
        assert answer["skipped"] == []
        return {
            "status": _CLIENT_STATUS[answer["status"]],
            "next_offset": answer["next_offset"],
            "messages": [_as_client(message, *queue) for message in answer["messages"]],
        }

    def offset_by_time(self, queue: Queue, time_ms: int) -> int:
        answer = self._get(f"topics/{queue[0]}/queues/{queue[1]}/offset", time=time_ms, semantics="rocketmq")
        offset: int = answer["offset"]
        return offset

    def query_key(self, topic: str, key: str) -> list[int]:
        answer = self._get(f"topics/{topic}/messages", key=key, limit=1000, semantics="rocketmq")
        return sorted({message["physical_offset"] for message in answer["messages"]})

    def view(self, topic: str, offset_message_id: str) -> Answer:
        answer = self._get(f"messages/{offset_message_id}", semantics="rocketmq", body_encoding="base64")
        assert answer["topic"] == topic
        return _as_client(answer["messages"][0], topic, answer["queue_id"])


def _as_client(message: Answer, topic: str, queue_id: int) -> Answer:
    """Return Tidemark's message in the form of RocketMQ's client."""
    same = (
        "queue_offset",
        "physical_offset",
        "store_size",
        "message_id",
        "sys_flag",
        "flag",
        "body_crc",
        "born_timestamp_ms",
        "store_timestamp_ms",
        "born_host",
        "store_host",
        "reconsume_times",
        "prepared_transaction_offset",
        "properties",
        "body",
    )
    told = {name: message[name] for name in same}
    return {"topic": topic, "queue_id": queue_id, "offset_message_id": message["offset_msg_id"], **told}
