"""The outcome of one look at a queue, and the limits of the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tidemark.read.pull import PullResult, PullStatus
from tidemark.read.tag_filter import TagFilter
from tidemark.read.watermark import Watermark

from ..config import QuerySettings
from ..schema.query_arguments import PullLimits

_WORTH_WAITING = frozenset(
    {
        PullStatus.NO_MATCHED_MESSAGE,
        PullStatus.MESSAGE_WAS_REMOVING,
        PullStatus.OFFSET_OVERFLOW_ONE,
        PullStatus.NO_MESSAGE_IN_QUEUE,
    }
)


class Limits(NamedTuple):
    """Of one answer, as they hold: what was asked for, capped. max_bytes: of records as stored."""

    max_messages: int
    max_bytes: int
    wait_ms: int
    tags: TagFilter | None
    whole_records: bool  # never a part of an inner batch
    as_broker: bool  # RocketMQ's rules
    as_columns: bool  # an Arrow stream: soon made

    @classmethod
    def of(
        cls,
        asked: PullLimits,
        settings: QuerySettings,
        *,
        whole_records: bool,
        as_broker: bool = False,
        as_columns: bool = False,
    ) -> Limits:
        """Of *asked*, and defaults for what it does not say."""
        return cls(
            min(asked.max_messages or settings.query_default_messages, settings.query_max_messages),
            min(asked.max_bytes or settings.query_default_bytes, settings.query_max_bytes),
            min(asked.wait_ms, settings.query_max_wait_ms),
            TagFilter.parse(asked.tag),
            whole_records,
            as_broker,
            as_columns,
        )


@dataclass
class Pulled:
    """What a look came to, and the limits that held."""

    watermark: Watermark
    result: PullResult
    requested_offset: int
    limits: Limits

    @property
    def is_worth_waiting(self) -> bool:
        """Whether there is nothing to give, and there may be later."""
        return self.result.status in _WORTH_WAITING
