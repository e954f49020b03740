"""Use of a query's filters to read less: fewer queues, shorter ranges, fewer records.

Spark evaluates every filter again, so this need not be exact; it must only never exclude a matching message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidemark.client.received_message import TopicQueue
from tidemark.format.tags import parse_tag_expression

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from tidemark.spark.source.log import Log
    from tidemark.spark.source.ranges import QueueRange

_MOST = 1 << 63
OWN_NAMES = {name: name for name in ("topic", "queue_id", "queue_offset", "store_timestamp", "tag")}


@dataclass(frozen=True)
class IntegerRange:
    """Integers with low ≤ n < high."""

    low: int = -_MOST
    high: int = _MOST

    def narrowed(self, kind: str, value: int) -> IntegerRange:
        """Restrict the span by a comparison with *value*."""
        low, high = {
            "EqualTo": (value, value + 1),
            "GreaterThan": (value + 1, _MOST),
            "GreaterThanOrEqual": (value, _MOST),
            "LessThan": (-_MOST, value),
            "LessThanOrEqual": (-_MOST, value + 1),
        }.get(kind, (-_MOST, _MOST))
        return IntegerRange(max(self.low, low), min(self.high, high))


@dataclass(frozen=True)
class Wanted:
    """Restrictions by filters. None: no restriction. store_ms: epoch milliseconds."""

    topics: frozenset[str] | None = None
    queue_ids: IntegerRange = IntegerRange()
    listed_queue_ids: frozenset[int] | None = None
    offsets: IntegerRange = IntegerRange()
    store_ms: IntegerRange = IntegerRange()
    tags: frozenset[str] | None = None

    def and_filters(self, filters: Iterable[Filter], names: Mapping[str, str] = OWN_NAMES) -> Wanted:
        """Restrict further by all of *filters*; unknown kinds of filters are left to Spark.

        names  names of the message's columns by the names in the filters
        """
        wanted = self
        for one in filters:
            column, value = names.get(".".join(getattr(one, "attribute", ()))), getattr(one, "value", None)
            if isinstance(value, tuple | list):  # IN: a null matches nothing
                value = [item for item in value if item is not None]
            if column is not None and value is not None:
                wanted = _NARROW[column](wanted, type(one).__name__, value)
        return wanted

    def has_queue(self, queue: TopicQueue) -> bool:
        """Return True if messages of *queue* can match."""
        return (
            (self.topics is None or queue.topic in self.topics)
            and self.queue_ids.low <= queue.queue_id < self.queue_ids.high
            and (self.listed_queue_ids is None or queue.queue_id in self.listed_queue_ids)
        )

    def of_range(self, whole: QueueRange, log: Log, *, slack_ms: int) -> QueueRange | None:
        """Return the part of *whole* in which messages can match; None if there is none.

        slack_ms  how far a message's store time can be below an earlier one's, because clocks are set back
        """
        if not self.has_queue(whole.queue) or (self.tags is not None and not self.tags):
            return None
        start, end = max(whole.start, self.offsets.low), min(whole.end, self.offsets.high)
        if start < end and self.store_ms.low > -_MOST:
            start = max(start, _or(log.offset_at(whole.queue, max(0, self.store_ms.low - slack_ms)), end))
        if start < end and self.store_ms.high < _MOST:
            end = min(end, _or(log.offset_at(whole.queue, max(0, self.store_ms.high + slack_ms)), end))
        return replace(whole, start=start, end=end) if start < end else None


def _or(offset: int | None, otherwise: int) -> int:
    return otherwise if offset is None else offset


def _topics(wanted: Wanted, kind: str, value: Any) -> Wanted:
    return replace(wanted, topics=_among(wanted.topics, kind, value))


def _tags(wanted: Wanted, kind: str, value: Any) -> Wanted:
    values = value if kind == "In" else [value]
    if any(parse_tag_expression(tag) != frozenset([tag]) for tag in values):  # cannot be expressed as a tag filter
        return wanted
    return replace(wanted, tags=_among(wanted.tags, kind, value))


def _queue_ids(wanted: Wanted, kind: str, value: Any) -> Wanted:
    if kind == "In":
        return replace(wanted, listed_queue_ids=_among(wanted.listed_queue_ids, kind, value))
    return replace(wanted, queue_ids=wanted.queue_ids.narrowed(kind, value))


def _offsets(wanted: Wanted, kind: str, value: Any) -> Wanted:
    if kind == "In":
        return replace(wanted, offsets=_around(wanted.offsets, list(value)))
    return replace(wanted, offsets=wanted.offsets.narrowed(kind, value))


def _store_times(wanted: Wanted, kind: str, value: Any) -> Wanted:
    if kind == "In":
        return replace(wanted, store_ms=_around(wanted.store_ms, [_ms(time) for time in value]))
    if kind in ("GreaterThan", "LessThan") and _has_microseconds(value):  # 5.4 ms is truncated to 5, so include 5
        kind += "OrEqual"
    return replace(wanted, store_ms=wanted.store_ms.narrowed(kind, _ms(value)))


_NARROW: dict[str, Callable[[Wanted, str, Any], Wanted]] = {
    "topic": _topics,
    "queue_id": _queue_ids,
    "queue_offset": _offsets,
    "store_timestamp": _store_times,
    "tag": _tags,
}


def _among(before: frozenset[Any] | None, kind: str, value: Any) -> frozenset[Any] | None:
    if kind not in ("EqualTo", "In"):
        return before
    values = frozenset(value if kind == "In" else [value])
    return values if before is None else before & values


def _around(before: IntegerRange, values: list[int]) -> IntegerRange:
    """Restrict *before* to the range from the least to the greatest of *values*."""
    if not values:
        return before
    least, greatest = min(values), max(values)
    return before.narrowed("GreaterThanOrEqual", least).narrowed("LessThanOrEqual", greatest)


def _ms(time: datetime) -> int:
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1_000_000 + 0.5) // 1000


def _has_microseconds(time: datetime) -> bool:
    return time.microsecond % 1000 != 0
