"""Fields of the answers to the requests of `offsets`. The answer to an update (15) has none."""

from __future__ import annotations

from typing import NamedTuple

from tidemark.remoting.field_table import INT64, FieldTable, HeaderField


class OffsetAnswer(NamedTuple):
    """Answer to 14, 29, 30 and 31: a queue offset."""

    queue_offset: int


OFFSET_ANSWER = FieldTable(OffsetAnswer, HeaderField("queue_offset", "offset", INT64))


class StoreTimeAnswer(NamedTuple):
    """Answer to 32: epoch milliseconds, -1 if the queue has no message."""

    timestamp: int


STORE_TIME_ANSWER = FieldTable(StoreTimeAnswer, HeaderField("timestamp", "timestamp", INT64))


class QueryMessageAnswer(NamedTuple):
    """Answer to 12, with and without a match: the last entry of the key index. The records are the body."""

    index_last_update_timestamp: int
    index_last_update_physical_offset: int


QUERY_MESSAGE_ANSWER = FieldTable(
    QueryMessageAnswer,
    HeaderField("index_last_update_timestamp", "indexLastUpdateTimestamp", INT64),
    HeaderField("index_last_update_physical_offset", "indexLastUpdatePhyoffset", INT64),
)
