"""Answers of the REST API as `Query` returns them, and the parameters of its requests. /docs explains each field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypedDict

BodyEncoding = Literal["base64", "utf8", "json", "auto"]
Semantics = Literal["tidemark", "rocketmq"]
Verify = Literal["service", "client", "none"]
TableVerify = Literal["service", "client"]
PullStatus = Literal[
    "FOUND",
    "NO_MATCHED_MESSAGE",
    "OFFSET_OVERFLOW_ONE",
    "NO_MESSAGE_IN_QUEUE",
    "MESSAGE_WAS_REMOVING",  # this one and the next only with semantics=rocketmq
    "OFFSET_FOUND_NULL",
]


class QueueLimits(TypedDict, total=False):
    """Limits of a page. tag: one or several."""

    max_messages: int | None
    max_bytes: int | None
    tag: str | Sequence[str] | None
    store: str | None


class QueueTableParameters(QueueLimits, total=False):
    """Limits of a page, and the form of its table.

    columns       names of the columns to send; default: all
    dictionaries  True: the columns tag, born_host and store_host are dictionary-encoded
    compression   of the answer, for slow networks
    """

    columns: Sequence[str] | None
    dictionaries: bool
    compression: Literal["lz4", "zstd"] | None


class PageParameters(QueueLimits, total=False):
    """Parameters of a series of pulls."""

    semantics: Semantics


class TablesParameters(PageParameters, QueueTableParameters, total=False):
    """Parameters of a series of pulls of tables."""


class RecordsParameters(PageParameters, total=False):
    """Parameters of a pull whose bodies are bytes. wait_ms: milliseconds to wait for messages."""

    wait_ms: int | None


class TableParameters(RecordsParameters, TablesParameters, total=False):
    """Parameters of a pull of a table."""


class PullParameters(RecordsParameters, total=False):
    """Parameters of a pull."""

    body_encoding: BodyEncoding


class LookupParameters(TypedDict, total=False):
    """Parameters of a lookup by message id. wait_ms: milliseconds to wait for the message to become visible."""

    wait_ms: int | None
    body_encoding: BodyEncoding
    semantics: Semantics


SearchParameters = TypedDict(  # `from` is a keyword of Python
    "SearchParameters",
    {
        "from": int | str,
        "to": int | str,
        "limit": int | None,
        "cursor": str | None,
        "body_encoding": BodyEncoding,
        "semantics": Semantics,
        "store": str | None,
    },
    total=False,
)


BatchLookupParameters = TypedDict(
    "BatchLookupParameters",
    {
        "from": int | str,
        "to": int | str,
        "limit": int | None,
        "body_encoding": BodyEncoding,
        "store": str | None,
    },
    total=False,
)


class QueuePlace(TypedDict):
    """A place in a queue of a topic."""

    queue_id: int
    offset: int


class Watermark(TypedDict):
    """The watermark: messages below its physical offset can be read."""

    term: int
    physical_offset: int
    published_ms: int


class Position(TypedDict):
    """The store and its watermark at the time of an answer."""

    store: str
    watermark: Watermark
    committed_offset: int
    lag_bytes: int


class WatermarkAnswer(Position):
    """The answer of `Query.watermark`."""

    published_age_ms: int | None
    remoting_address: str | None


class MessageAnswer(TypedDict):
    """One message. body_encoding is the encoding of its body."""

    queue_offset: int
    physical_offset: int
    message_id: str | None
    offset_msg_id: str | None
    store_timestamp_ms: int
    born_timestamp_ms: int
    tag: str | None
    keys: list[str]
    properties: dict[str, str]
    flag: int
    sys_flag: int
    reconsume_times: int
    born_host: str
    store_host: str
    body_crc: int
    body: Any
    body_encoding: Literal["base64", "utf8", "json"]


class FoundMessage(MessageAnswer):
    """A message of a search, with its queue."""

    queue_id: int


class SkippedAnswer(TypedDict):
    """A record that failed its check, or queue offsets whose units are lost."""

    physical_offset: int
    queue_offset: int
    reason: str
    message_count: int


class PullAnswer(Position):
    """The answer of `Query.pull`: messages of one queue, and the offset of the next pull."""

    topic: str
    queue_id: int
    status: PullStatus
    status_text: str
    requested_offset: int
    next_offset: int
    min_offset: int
    max_offset: int
    max_messages: int
    max_bytes: int
    wait_ms: int
    skipped: list[SkippedAnswer]
    messages: list[MessageAnswer]


class MessagesAnswer(Position):
    """The answer of `Query.message`: the messages of one record, several for an inner batch."""

    topic: str
    queue_id: int
    messages: list[MessageAnswer]


class SearchAnswer(Position):
    """The answer of `Query.by_key`: a page of messages in the order of the log."""

    topic: str
    limit: int
    next_cursor: str | None
    skipped: list[SkippedAnswer]
    messages: list[FoundMessage]


class LookupResult(TypedDict):
    """The messages of one key or offset. reason: why there is no message at an offset, otherwise None."""

    reason: str | None
    next_cursor: str | None
    skipped: list[SkippedAnswer]
    messages: list[FoundMessage]


class LookupAnswer(Position):
    """The answer of `Query.lookup`: results of the first *looked_at* keys or offsets, in their order."""

    topic: str
    limit: int
    looked_at: int
    results: list[LookupResult]


class QueueAnswer(Position):
    """The answer of `Query.queue`: offsets from min_offset to max_offset - 1 can be read."""

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int


class OffsetAnswer(Position):
    """The answer of `Query.offset_at`: an offset, and the store time of its message, or None without one."""

    topic: str
    queue_id: int
    time_ms: int
    boundary: Literal["lower", "upper"]
    offset: int
    store_timestamp_ms: int | None
    min_offset: int
    max_offset: int
