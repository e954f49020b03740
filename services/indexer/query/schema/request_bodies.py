"""Request bodies, checked by pydantic and described in OpenAPI."""

from __future__ import annotations

import binascii
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator

from tidemark.format.json_text import JsonWalk, is_too_deep, too_deep
from tidemark.format.tags import MAX_DELAY_LEVEL
from tidemark.read.messages.body import BodyEncoding

from ..queue_allocation import Queue, Strategy
from .query_arguments import (
    ENCODING,
    MAX_I4,
    MAX_I8,
    Arguments,
    MemberId,
    PullLimits,
    PullOffset,
    Time,
    TopicName,
)

_QueueId = Annotated[int, Field(ge=0, le=MAX_I4, strict=True)]
_QueueOffset = Annotated[int, Field(ge=0, le=MAX_I8, strict=True, description="the group's next queue offset")]


def _as_text(offset: Any) -> Any:
    return str(offset) if type(offset) is int else offset


_Generation = Annotated[int, Field(ge=0, le=MAX_I8, strict=True)]


class AppendMessage(BaseModel):
    """One message to append."""

    model_config = ConfigDict(extra="forbid")

    body: Any = Field(
        description="text; with body_encoding base64, base64 text; with body_encoding json, any value, whose text is "
        "stored exactly as sent"
    )
    body_encoding: Literal["utf8", "base64", "json"] = "utf8"
    tag: str | None = None
    keys: list[str] = []
    properties: dict[str, str] = {}
    flag: int = Field(0, ge=-MAX_I4 - 1, le=MAX_I4)

    _json_text: bytes = PrivateAttr(b"")

    @model_validator(mode="after")
    def _must_be_there(self) -> Self:
        if self.body is None and self.body_encoding != "json":
            raise ValueError("body is null: only body_encoding json allows that")
        return self

    def keep_json_text(self, text: str) -> None:
        """Store the body's text exactly as sent."""
        self._json_text = text.encode()

    def raw_body(self) -> bytes:
        """Return the bytes to store.

        Raises:
            ValueError: the body is not in the form that body_encoding names, or it is JSON and nested too deeply.
        """
        if self.body_encoding == "json":
            if is_too_deep(self._json_text):
                raise ValueError(f"body: {too_deep()}")
            return self._json_text
        if not isinstance(self.body, str):
            raise ValueError("body is not a string: body_encoding json takes any value")
        if self.body_encoding == "utf8":
            return self.body.encode()
        try:
            return binascii.a2b_base64(self.body, strict_mode=True)
        except binascii.Error as error:
            raise ValueError(f"body is not base64: {error}") from None


class AppendBody(BaseModel):
    """A batch of messages to append. All messages are appended, or none."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"messages": [{"body": "hello", "tag": "greeting", "keys": ["k1"], "properties": {"lang": "en"}}]}
            ]
        },
    )

    messages: list[AppendMessage] = Field(min_length=1, max_length=32_767)
    queue_id: int | None = Field(
        None,
        ge=0,
        le=MAX_I4,
        description="absent: chosen by routing_key, otherwise by the first message's first key, otherwise in turn",
    )
    routing_key: str | None = None

    def keep_json_texts(self, document: str) -> None:
        """Take the bodies with body_encoding json from the request's text, so that they are stored unchanged.

        Raises:
            ValueError: a value is nested too deeply.
        """
        if all(message.body_encoding != "json" for message in self.messages):
            return
        request = JsonWalk(document)
        [messages] = [request.text() for name in request.members() if name == "messages"][
            -1:
        ]  # the last one, as in pydantic
        walk = JsonWalk(messages)
        for message, _ in zip(self.messages, walk.elements(), strict=True):
            for name in walk.members():
                if name == "body":
                    message.keep_json_text(walk.text())

    expected_next_offset: int | None = Field(
        None, ge=0, le=MAX_I8, description="append only if the queue's next offset is this one"
    )


class TopicBody(BaseModel):
    """A topic to create."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"topic": "orders", "queues": 4, "attributes": {"queue.type": "BatchCQ"}}]},
    )

    topic: TopicName
    queues: int | None = Field(None, ge=1, le=MAX_I4, strict=True, description="absent: the writer's default")
    attributes: dict[str, str] = Field(
        {}, description="RocketMQ's topic attributes, such as queue.type: SimpleCQ or BatchCQ"
    )


_FORCE = Field(False, strict=True, description="set the offset even if it is above the queue's end")


class OffsetBody(BaseModel):
    """A group's offset in one queue."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"offset": 131}]})

    offset: _QueueOffset
    force: bool = _FORCE


class JoinBody(BaseModel):
    """A member's subscription."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"topics": ["orders"]}]})

    topics: list[TopicName] = Field(min_length=1, description="topics to consume, which may be created later")
    strategy: Strategy = Field(
        Strategy.AVERAGELY, description="how queues are allocated; must be the same for all members of a group"
    )
    session_timeout_ms: int | None = Field(
        None,
        ge=1,
        le=MAX_I4,
        strict=True,
        description="time without a heartbeat after which the member is removed; absent: the service's default",
    )
    member_id: MemberId | None = Field(
        None, description="replaces a live member with the same id; absent: the service makes one"
    )


class HeldQueue(BaseModel):
    """A queue."""

    model_config = ConfigDict(extra="forbid")

    topic: TopicName
    queue_id: _QueueId


class HeartbeatBody(BaseModel):
    """A member's heartbeat, with the queues that it still holds."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"generation": 1795240089394, "holds": [{"topic": "orders", "queue_id": 0}]}]},
    )

    generation: _Generation = Field(description="generation of the member's last lease")
    holds: list[HeldQueue] = Field(
        description="queues that the member still holds; other queues of its lease are released, and none is added"
    )

    @property
    def queues(self) -> set[Queue]:
        """Queues that the member holds."""
        return {Queue(held.topic, held.queue_id) for held in self.holds}


class PulledQueue(HeldQueue):
    """A queue to pull from."""

    offset: Annotated[PullOffset, BeforeValidator(_as_text, json_schema_input_type=int | str)] = Field(
        description="a queue offset, or earliest or latest"
    )
    max_messages: int | None = Field(
        None, ge=1, le=MAX_I4, description="most messages of this queue; absent: only the request's limit"
    )


class PullQueuesBody(PullLimits):
    """A pull from many queues. max_messages and max_bytes hold for all queues together."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "queues": [
                        {"topic": "orders", "queue_id": 0, "offset": 131},
                        {"topic": "orders", "queue_id": 1, "offset": "earliest"},
                    ],
                    "max_messages": 100,
                    "wait_ms": 1000,
                }
            ]
        },
    )

    queues: list[PulledQueue] = Field(
        min_length=1, description="queues to read, in this order until the answer is full"
    )


class LookedUpOffset(BaseModel):
    """A place in a queue of the topic."""

    model_config = ConfigDict(extra="forbid")

    queue_id: _QueueId
    offset: Annotated[int, Field(ge=0, le=MAX_I8, strict=True)]


_Key = Annotated[str, Field(min_length=1, max_length=32_767)]
_LookupTime = Annotated[Time, Field(ge=-MAX_I8, le=MAX_I8)]


class LookupBody(Arguments):
    """Messages to look up: by keys, by unique keys, or by queue offsets."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        json_schema_extra={
            "examples": [
                {"keys": ["order-101", "order-102"], "limit": 1},
                {"offsets": [{"queue_id": 0, "offset": 17}, {"queue_id": 1, "offset": 4}]},
            ]
        },
    )

    keys: list[_Key] | None = Field(None, min_length=1, description="each result has the messages with this key")
    unique_keys: list[_Key] | None = Field(None, min_length=1, description="message ids that clients made")
    offsets: list[LookedUpOffset] | None = Field(None, min_length=1, description="each result has one message")
    from_ms: _LookupTime = Field(0, alias="from", description="messages with a key stored at or after this time")
    to_ms: _LookupTime = Field(MAX_I8, alias="to", description="messages with a key stored at or before this time")
    limit: int | None = Field(None, ge=1, le=MAX_I4, strict=True, description="messages of each key; capped")
    body_encoding: BodyEncoding = Field(BodyEncoding.AUTO, description=ENCODING)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if sum(given is not None for given in (self.keys, self.unique_keys, self.offsets)) != 1:
            raise ValueError("expected exactly one of keys, unique_keys and offsets")
        if self.offsets is not None:
            for name, given in (("from", "from_ms"), ("to", "to_ms"), ("limit", "limit")):
                if given in self.model_fields_set:
                    raise ValueError(f"{name}: it has no meaning with offsets")
        return self


class RetriedMessage(BaseModel):
    """A message to send back, named by topic, queue_id and queue_offset or by its offset message id."""

    model_config = ConfigDict(extra="forbid")

    topic: TopicName | None = Field(None, description="topic that the group has read the message from")
    queue_id: _QueueId | None = None
    queue_offset: Annotated[int, Field(ge=0, le=MAX_I8, strict=True)] | None = None
    message_id: str | None = Field(
        None, max_length=80, description="an offset message id, with -N for message N of an inner batch"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        place = (self.topic, self.queue_id, self.queue_offset)
        is_place = all(part is not None for part in place)
        if is_place is (self.message_id is not None) or (not is_place and any(part is not None for part in place)):
            raise ValueError("name a message by topic, queue_id and queue_offset together, or by message_id alone")
        return self


class RetryBody(BaseModel):
    """Messages whose handling failed."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "messages": [
                        {"topic": "orders", "queue_id": 0, "queue_offset": 131},
                        {"message_id": "7F00000100001F910000000000002000-3"},
                    ],
                    "delay_level": 0,
                }
            ]
        },
    )

    messages: list[RetriedMessage] = Field(min_length=1)
    delay_level: int = Field(
        0,
        ge=-1,
        le=MAX_DELAY_LEVEL,
        strict=True,
        description="0: level 3 plus the number of earlier tries; 1 to 18: this level; -1: to the dead letters at once",
    )
    max_reconsume_times: int | None = Field(
        None, ge=0, le=MAX_I4, strict=True, description="tries before the dead letters; absent: the writer's setting"
    )


class QueueOffset(HeldQueue):
    """A queue and the group's next offset in it."""

    offset: _QueueOffset


class OffsetsBody(BaseModel):
    """A group's offsets in several queues: all are set, or none. Send both member_id and generation, or neither."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "member_id": "consumer-1",
                    "generation": 1795240089394,
                    "offsets": [
                        {"topic": "orders", "queue_id": 0, "offset": 131},
                        {"topic": "orders", "queue_id": 1, "offset": 97},
                    ],
                }
            ]
        },
    )

    member_id: MemberId | None = Field(None, description="member that holds these queues; absent: a reset")
    generation: _Generation | None = Field(None, description="generation of the member's last lease")
    offsets: list[QueueOffset] = Field(min_length=1)
    force: bool = _FORCE

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.member_id is None) is not (self.generation is None):
            raise ValueError("member_id and generation: send both or neither")
        if len(self.queues) < len(self.offsets):
            raise ValueError("offsets: a queue is named twice")
        return self

    @property
    def queues(self) -> set[Queue]:
        """Queues whose offsets are set."""
        return {Queue(one.topic, one.queue_id) for one in self.offsets}
