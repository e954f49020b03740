"""Answers, as OpenAPI describes them. Nothing is sent through these: orjson writes plain dicts of the same names."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class WatermarkAnswer(BaseModel):
    """How far may be read."""

    term: int
    physical_offset: int
    published_ms: int


class MessageAnswer(BaseModel):
    """One message."""

    queue_offset: int
    physical_offset: int
    message_id: str | None = Field(
        description="UNIQ_KEY of the message, else its offset message id, with -N for message N of an inner batch"
    )
    offset_msg_id: str | None
    store_timestamp_ms: int
    born_timestamp_ms: int
    tag: str | None
    keys: list[str]
    properties: dict[str, str] = Field(description="without TAGS, KEYS and UNIQ_KEY (semantics=rocketmq: all of them)")
    flag: int
    sys_flag: int
    reconsume_times: int
    born_host: str
    store_host: str
    body_crc: int
    body: Any
    body_encoding: Literal["base64", "utf8", "json"]


class SkippedAnswer(BaseModel):
    """A record that failed its check, or queue offsets whose units are lost."""

    physical_offset: int = Field(description="-1 where the unit is lost")
    queue_offset: int
    reason: str
    message_count: int = Field(description="queue offsets that are passed over, from queue_offset on")


_MESSAGE_EXAMPLE: dict[str, JsonValue] = {
    "queue_offset": 120,
    "physical_offset": 8192,
    "message_id": "7F000001041C18B4AAC2851B0BAC0003",
    "offset_msg_id": "7F00000100001F910000000000002000",
    "store_timestamp_ms": 1795240089391,
    "born_timestamp_ms": 1795240089308,
    "tag": "A",
    "keys": ["k1"],
    "properties": {"lang": "en"},
    "flag": 0,
    "sys_flag": 0,
    "reconsume_times": 0,
    "born_host": "127.0.0.1:42670",
    "store_host": "127.0.0.1:8081",
    "body_crc": 907060870,
    "body": "hello",
    "body_encoding": "utf8",
}
_WATERMARK_EXAMPLE: dict[str, JsonValue] = {"term": 7, "physical_offset": 9437184, "published_ms": 1795240089394}


class PullAnswer(BaseModel):
    """Messages of one queue, and where to go on."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "store": "tidemark-0",
                    "topic": "orders",
                    "queue_id": 0,
                    "status": "FOUND",
                    "requested_offset": 120,
                    "next_offset": 121,
                    "min_offset": 0,
                    "max_offset": 131,
                    "watermark": _WATERMARK_EXAMPLE,
                    "committed_offset": 9437184,
                    "lag_bytes": 0,
                    "max_messages": 1,
                    "max_bytes": 1048576,
                    "wait_ms": 0,
                    "skipped": [],
                    "messages": [_MESSAGE_EXAMPLE],
                }
            ]
        }
    )

    store: str
    topic: str
    queue_id: int
    status: Literal["FOUND", "NO_MATCHED_MESSAGE", "OFFSET_OVERFLOW_ONE", "NO_MESSAGE_IN_QUEUE"] = Field(
        description="semantics=rocketmq: MESSAGE_WAS_REMOVING and OFFSET_FOUND_NULL too"
    )
    requested_offset: int
    next_offset: int
    min_offset: int
    max_offset: int
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    max_messages: int
    max_bytes: int
    wait_ms: int
    skipped: list[SkippedAnswer]
    messages: list[MessageAnswer]


class PullsAnswer(BaseModel):
    """Messages of many queues."""

    store: str
    looked_at: int = Field(description="queues, in the order asked for; the answer was full before the others")
    answers: list[PullAnswer | ProblemAnswer]


class MessagesAnswer(BaseModel):
    """The messages of one record: several for an inner batch."""

    store: str
    topic: str
    queue_id: int
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    messages: list[MessageAnswer]


class FoundMessage(MessageAnswer):
    """A message of a search says which queue it is in."""

    queue_id: int


class SearchAnswer(BaseModel):
    """A page of messages in the order of the log."""

    store: str
    topic: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    limit: int
    next_cursor: str | None = Field(description="null: there is nothing behind this page now")
    skipped: list[SkippedAnswer]
    messages: list[FoundMessage]


class QueueAnswer(BaseModel):
    """Bounds of one queue: min_offset ≤ offset < max_offset may be read."""

    queue_id: int
    min_offset: int
    max_offset: int


class QueueDetailAnswer(QueueAnswer):
    """One queue, with the watermark its bounds belong to."""

    store: str
    topic: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int


class TopicAnswer(BaseModel):
    """One topic."""

    topic: str
    queue_type: Literal["SimpleCQ", "BatchCQ"]
    read_queues: int
    write_queues: int
    permission: int
    attributes: dict[str, str]
    queue_ids: list[int]


class TopicDetailAnswer(TopicAnswer):
    """One topic with its queues' bounds."""

    store: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    queues: list[QueueAnswer]


class TopicsAnswer(BaseModel):
    """All topics."""

    store: str
    topics: list[TopicAnswer]


class TopicCreatedAnswer(TopicAnswer):
    """A topic that was created, or was there in this shape."""

    store: str
    created: bool = Field(description="false: it was there, and is as it was")


class OffsetByTimeAnswer(BaseModel):
    """An offset, and what is stored there."""

    store: str
    topic: str
    queue_id: int
    time_ms: int
    boundary: Literal["lower", "upper"]
    offset: int
    store_timestamp_ms: int | None = Field(
        description="null: no message meets the boundary; offset is the queue's end then"
    )
    min_offset: int
    max_offset: int
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int


class AppendAnswer(BaseModel):
    """What the writer said."""

    store: str
    topic: str
    status: Literal["PUT_OK", "FLUSH_DISK_TIMEOUT"]
    queue_id: int
    queue_offset: int
    message_count: int
    next_offset: int
    physical_offset: int
    end_physical_offset: int
    store_timestamp_ms: int
    physical_offsets: list[int]
    offset_msg_ids: list[str] = Field(description="one a record: an inner batch is one record")
    duplicate: bool
    term: int
    deliver_timestamp_ms: int | None = Field(
        description="of a delayed message, when it comes to its topic: until then it lies at these offsets of "
        "SCHEDULE_TOPIC_XXXX; null: it is there already"
    )


class CorruptionAnswer(BaseModel):
    """A damaged place of the log."""

    physical_offset: int
    size: int
    reason: str
    topic: str | None
    queue_id: int | None
    queue_offset: int | None
    found_ms: int


class LostUnitAnswer(SkippedAnswer):
    """A place of a queue that a pull had to pass over."""

    topic: str
    queue_id: int
    found_ms: int


class CorruptionsAnswer(BaseModel):
    """The ledger, ascending by place, and the places of queues that pulls had to pass over."""

    store: str
    total: int
    limit: int
    next_after: int | None
    corruptions: list[CorruptionAnswer]
    lost_units: list[LostUnitAnswer] = Field(description="on the first page: the first `limit` of them")


class WatermarkDetailAnswer(BaseModel):
    """The watermark and what makes it."""

    store: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    published_age_ms: int | None


class ProblemAnswer(BaseModel):
    """RFC 9457, with a stable reason. Facts stand beside it, such as min_offset and next_offset."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:tidemark:problem:offset-too-small",
                    "title": "Offset too small",
                    "status": 410,
                    "reason": "OFFSET_TOO_SMALL",
                    "detail": "offset 3 is below the queue's minimum",
                    "requested_offset": 3,
                    "next_offset": 395,
                    "min_offset": 395,
                    "max_offset": 609,
                    "request_id": "0f3a7c51e2b4-1d",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    reason: str
    detail: str
    request_id: str | None = Field(
        None, description="of this request in the service's log; also the header X-Request-Id"
    )
