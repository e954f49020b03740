"""Answers, as OpenAPI describes them. They are documentation only: the routes send plain dicts with the same names."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

PullStatus = Literal[
    "FOUND",
    "NO_MATCHED_MESSAGE",
    "OFFSET_OVERFLOW_ONE",
    "NO_MESSAGE_IN_QUEUE",
    "MESSAGE_WAS_REMOVING",
    "OFFSET_FOUND_NULL",
]


class WatermarkAnswer(BaseModel):
    """The watermark: messages below its physical offset can be read."""

    term: int
    physical_offset: int
    published_ms: int


class MessageAnswer(BaseModel):
    """One message."""

    queue_offset: int
    physical_offset: int
    message_id: str | None = Field(
        description="UNIQ_KEY of the message, otherwise its offset message id, with -N for message N of an inner batch"
    )
    offset_msg_id: str | None
    store_timestamp_ms: int
    born_timestamp_ms: int
    tag: str | None
    keys: list[str]
    properties: dict[str, str] = Field(
        description="properties except TAGS, KEYS and UNIQ_KEY; semantics=rocketmq: all properties"
    )
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

    physical_offset: int = Field(description="-1 if the unit is lost")
    queue_offset: int
    reason: str
    message_count: int = Field(description="number of skipped queue offsets, beginning with queue_offset")


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
    """Messages of one queue, and the offset of the next pull."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "store": "tidemark-0",
                    "topic": "orders",
                    "queue_id": 0,
                    "status": "FOUND",
                    "status_text": "messages from the requested offset on",
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
    status: PullStatus = Field(
        description="outcome of the pull; MESSAGE_WAS_REMOVING and OFFSET_FOUND_NULL only with semantics=rocketmq"
    )
    status_text: str = Field(description="the status in words, for humans")
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
    looked_at: int = Field(
        description="number of queues that were read, in the request's order; the answer was full before the others"
    )
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
    """A message of a search, with its queue."""

    queue_id: int


class SearchAnswer(BaseModel):
    """A page of messages in the order of the log."""

    store: str
    topic: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    limit: int
    next_cursor: str | None = Field(description="cursor of the next page; null: no further messages now")
    skipped: list[SkippedAnswer]
    messages: list[FoundMessage]


class LookupResult(BaseModel):
    """The messages of one key or offset."""

    reason: str | None = Field(
        description="why there is no message at an offset: OFFSET_TOO_SMALL (deleted), OFFSET_OUT_OF_RANGE (above the "
        "queue's end), NOT_YET_VISIBLE (perhaps committed), CORRUPT_MESSAGE, NOT_FOUND or QUEUE_ID_ILLEGAL; otherwise "
        "null"
    )
    next_cursor: str | None = Field(
        description="cursor of the key's next page, which GET /v1/topics/{topic}/messages returns; null: none now"
    )
    skipped: list[SkippedAnswer]
    messages: list[FoundMessage]


class LookupAnswer(BaseModel):
    """One result for each key or offset, in the request's order."""

    store: str
    topic: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    limit: int = Field(description="most messages of one result")
    looked_at: int = Field(
        description="number of results; the answer was full before the other keys or offsets, so ask for those again"
    )
    results: list[LookupResult]


class QueueAnswer(BaseModel):
    """Bounds of one queue: offsets from min_offset to max_offset - 1 can be read."""

    queue_id: int
    min_offset: int
    max_offset: int


class QueueDetailAnswer(QueueAnswer):
    """One queue, with the watermark that determines its bounds."""

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
    caller_actions: list[Literal["Pub", "Sub", "Create", "Update", "Delete", "Get", "List"]] = Field(
        description="actions on the topic that this service allows to the caller; all of them without an access file"
    )
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    queues: list[QueueAnswer]


class TopicsAnswer(BaseModel):
    """All topics."""

    store: str
    topics: list[TopicAnswer]


class TopicCreatedAnswer(TopicAnswer):
    """A topic that was created, or that existed with the same settings."""

    store: str
    created: bool = Field(description="false: the topic existed and is unchanged")


class OffsetByTimeAnswer(BaseModel):
    """An offset, and the store time of its message."""

    store: str
    topic: str
    queue_id: int
    time_ms: int
    boundary: Literal["lower", "upper"]
    offset: int
    store_timestamp_ms: int | None = Field(
        description="null: no message matches, and offset is max_offset (boundary lower) or min_offset (upper); "
        "always null with semantics=rocketmq"
    )
    min_offset: int
    max_offset: int
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int


class AppendAnswer(BaseModel):
    """The writer's answer to an append."""

    store: str
    topic: str
    status: Literal["PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"]
    queue_id: int
    queue_offset: int
    message_count: int
    next_offset: int
    physical_offset: int
    end_physical_offset: int
    store_timestamp_ms: int
    physical_offsets: list[int]
    offset_msg_ids: list[str] = Field(description="one per record; an inner batch is one record")
    duplicate: bool
    term: int
    deliver_timestamp_ms: int | None = Field(
        description="delivery time of a delayed message; until then it is stored at these offsets of "
        "SCHEDULE_TOPIC_XXXX; null: not delayed"
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
    """A place of a queue that a pull skipped."""

    topic: str
    queue_id: int
    found_ms: int


class CorruptionsAnswer(BaseModel):
    """The ledger of damage, ascending by physical offset, and the places of queues that pulls skipped."""

    store: str
    total: int
    limit: int
    next_after: int | None
    corruptions: list[CorruptionAnswer]
    lost_units: list[LostUnitAnswer] = Field(description="the first `limit` of them, on the first page only")


class WatermarkDetailAnswer(BaseModel):
    """The watermark, the committed offset and the time since the last publication."""

    store: str
    watermark: WatermarkAnswer
    committed_offset: int
    lag_bytes: int
    published_age_ms: int | None
    remoting_address: str | None


class ProblemAnswer(BaseModel):
    """RFC 9457 problem with a stable reason. Facts such as min_offset and next_offset are further members."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:tidemark:problem:offset-too-small",
                    "title": "Offset too small",
                    "status": 410,
                    "reason": "OFFSET_TOO_SMALL",
                    "detail": "offset 3 is below the queue's minimum, 395",
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
        None, description="the request's id in the service's log, also in the header X-Request-Id"
    )
