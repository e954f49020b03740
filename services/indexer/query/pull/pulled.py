"""The outcome of one read of a queue, and the limits of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidemark.read.pull import PullResult, PullStatus
from tidemark.read.tag_filter import TagFilter
from tidemark.read.watermark import Watermark

from ..config import QuerySettings
from ..schema.query_arguments import PullLimits, Verify

_WORTH_WAITING = (
    PullStatus.OFFSET_OVERFLOW_ONE,
    PullStatus.NO_MATCHED_MESSAGE,
    PullStatus.MESSAGE_WAS_REMOVING,
    PullStatus.NO_MESSAGE_IN_QUEUE,
)


class AnswerLimits(NamedTuple):
    """Limits of one answer: the requested ones, capped by the settings. max_bytes: bytes of records as stored."""

    max_messages: int
    max_bytes: int
    wait_ms: int
    tags: TagFilter | None
    whole_records: bool  # an inner batch is returned whole or not at all
    as_broker: bool = False  # RocketMQ's rules
    as_columns: bool = False  # the answer is an Arrow stream without compression, which is cheap to make
    tags_by_hash: bool = False  # the reader compares tags as text
    unchecked: bool = False  # the reader checks the records

    @classmethod
    def of(
        cls,
        asked: PullLimits,
        settings: QuerySettings,
        *,
        whole_records: bool,
        as_broker: bool = False,
        as_columns: bool = False,
        may_be_unchecked: bool = False,
    ) -> AnswerLimits:
        """Return the limits of *asked*, with the settings' defaults and maxima.

        may_be_unchecked: False for a caller that may not see the records of other topics
        """
        return cls(
            min(asked.max_messages or settings.query_default_messages, settings.query_max_messages),
            min(asked.max_bytes or settings.query_default_bytes, settings.query_max_bytes),
            min(asked.wait_ms, settings.query_max_wait_ms),
            TagFilter.parse(asked.tag),
            whole_records,
            as_broker,
            as_columns,
            unchecked=may_be_unchecked and asked.verify is Verify.READER,
        )


@dataclass
class Pulled:
    """The outcome of a read, and the limits that applied."""

    watermark: Watermark
    result: PullResult
    requested_offset: int
    limits: AnswerLimits

    @property
    def is_worth_waiting(self) -> bool:
        """True if there is no message to return now, but there may be one later."""
        return self.result.status in _WORTH_WAITING
