"""ReceivedMessage: what a consumer gets, with its place; and the page of them that one pull answers."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

JSON = "application/json"
Json = dict[str, Any]


class TopicQueue(NamedTuple):
    """One queue of a topic."""

    topic: str
    queue_id: int


class ReceivedMessage(NamedTuple):
    """One message, decompressed and out of its inner batch.

    message_id     its UNIQ_KEY, else its offset message id, with -N after it for message N of an inner batch
    offset_msg_id  of its record: all messages of an inner batch share it
    properties     without TAGS, KEYS and UNIQ_KEY, which are tag, keys and message_id
    *_ms           epoch milliseconds
    """

    topic: str
    queue_id: int
    queue_offset: int
    body: bytes
    tag: str | None
    keys: tuple[str, ...]
    properties: Mapping[str, str]
    message_id: str | None
    offset_msg_id: str | None
    physical_offset: int
    store_timestamp_ms: int
    born_timestamp_ms: int
    flag: int
    sys_flag: int
    reconsume_times: int
    born_host: str
    store_host: str

    @property
    def queue(self) -> TopicQueue:
        """Where it lies."""
        return TopicQueue(self.topic, self.queue_id)

    def text(self) -> str:
        """The body as text; UnicodeDecodeError where it is none."""
        return self.body.decode()

    def json(self) -> Any:
        """The body's JSON value; ValueError where it is none."""
        return orjson.loads(self.body)

    @classmethod
    def of(cls, queue: TopicQueue, message: Json) -> ReceivedMessage:
        """A message of a JSON answer whose bodies are base64."""
        return cls(
            *queue,
            message["queue_offset"],
            binascii.a2b_base64(message["body"]),
            message["tag"],
            tuple(message["keys"]),
            message["properties"],
            message["message_id"],
            message["offset_msg_id"],
            message["physical_offset"],
            message["store_timestamp_ms"],
            message["born_timestamp_ms"],
            message["flag"],
            message["sys_flag"],
            message["reconsume_times"],
            message["born_host"],
            message["store_host"],
        )


class PulledPage(NamedTuple):
    """What one pull came to. skipped: records that failed their check; the first twenty."""

    queue: TopicQueue
    status: str
    messages: list[ReceivedMessage]
    requested_offset: int
    next_offset: int
    min_offset: int
    max_offset: int
    skipped: list[Json]


def pulled_page(queue: TopicQueue, page: Json) -> PulledPage:
    """The page that a JSON answer holds."""
    return PulledPage(
        queue,
        page["status"],
        [ReceivedMessage.of(queue, message) for message in page["messages"]],
        page["requested_offset"],
        page["next_offset"],
        page["min_offset"],
        page["max_offset"],
        page["skipped"],
    )
