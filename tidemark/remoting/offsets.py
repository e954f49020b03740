"""Offsets of queues and groups (14, 15, 29, 30, 31, 32), and lookups of single messages (12, 33)."""

from __future__ import annotations

import enum
from typing import NamedTuple

from tidemark.remoting.field_table import BOOLEAN, INT32, INT64, TEXT, FieldTable, HeaderField, Kind


class BoundaryType(enum.StrEnum):
    """Side of a timestamp. LOWER: the first message that was stored at this time or later."""

    LOWER = "LOWER"
    UPPER = "UPPER"


_BOUNDARY_TYPE = Kind("LOWER or UPPER", BoundaryType, str)


class QueryConsumerOffset(NamedTuple):
    """Code 14: the group's offset of a queue."""

    consumer_group: str
    topic: str
    queue_id: int
    set_zero_if_not_found: bool | None = None  # False: an unknown offset is never answered as 0


QUERY_CONSUMER_OFFSET = FieldTable(
    QueryConsumerOffset,
    HeaderField("consumer_group", "consumerGroup", TEXT),
    HeaderField("topic", "topic", TEXT),
    HeaderField("queue_id", "queueId", INT32),
    HeaderField("set_zero_if_not_found", "setZeroIfNotFound", BOOLEAN),
)


class UpdateConsumerOffset(NamedTuple):
    """Code 15: store the group's offset of a queue."""

    consumer_group: str
    topic: str
    queue_id: int
    commit_offset: int


UPDATE_CONSUMER_OFFSET = FieldTable(
    UpdateConsumerOffset,
    HeaderField("consumer_group", "consumerGroup", TEXT),
    HeaderField("topic", "topic", TEXT),
    HeaderField("queue_id", "queueId", INT32),
    HeaderField("commit_offset", "commitOffset", INT64),
)


class SearchOffset(NamedTuple):
    """Code 29: the offset of a store time, in epoch milliseconds."""

    topic: str
    queue_id: int
    timestamp: int
    boundary_type: BoundaryType = BoundaryType.LOWER


SEARCH_OFFSET = FieldTable(
    SearchOffset,
    HeaderField("topic", "topic", TEXT),
    HeaderField("queue_id", "queueId", INT32),
    HeaderField("timestamp", "timestamp", INT64),
    HeaderField("boundary_type", "boundaryType", _BOUNDARY_TYPE),
)


class MaxOffset(NamedTuple):
    """Code 30: the end of a queue."""

    topic: str
    queue_id: int
    committed: bool = True


MAX_OFFSET = FieldTable(
    MaxOffset,
    HeaderField("topic", "topic", TEXT),
    HeaderField("queue_id", "queueId", INT32),
    HeaderField("committed", "committed", BOOLEAN),
)


class QueueRequest(NamedTuple):
    """Codes 31 (the start of a queue) and 32 (the store time of its first message)."""

    topic: str
    queue_id: int


QUEUE_REQUEST = FieldTable(QueueRequest, HeaderField("topic", "topic", TEXT), HeaderField("queue_id", "queueId", INT32))


class QueryMessage(NamedTuple):
    """Code 12: the messages with a key. Timestamps are epoch milliseconds."""

    topic: str
    key: str
    max_num: int
    begin_timestamp: int
    end_timestamp: int
    is_unique_key: bool = False


QUERY_MESSAGE = FieldTable(
    QueryMessage,
    HeaderField("topic", "topic", TEXT),
    HeaderField("key", "key", TEXT),
    HeaderField("max_num", "maxNum", INT32),
    HeaderField("begin_timestamp", "beginTimestamp", INT64),
    HeaderField("end_timestamp", "endTimestamp", INT64),
    HeaderField("is_unique_key", "_UNIQUE_KEY_QUERY", BOOLEAN),
)


class ViewMessage(NamedTuple):
    """Code 33: the message at a physical offset."""

    physical_offset: int
    topic: str | None = None


VIEW_MESSAGE = FieldTable(
    ViewMessage, HeaderField("physical_offset", "offset", INT64), HeaderField("topic", "topic", TEXT)
)
