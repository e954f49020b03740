"""Messages of several queues in one order, by store time."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tidemark.cli.reading.message_pages import MAX_PAGE, ReadRange, pages_of_queue

if TYPE_CHECKING:
    from tidemark.client import Query

_HELD = 8_192  # messages that a merge of many queues holds
_LEAST_PAGE = 16
_GROWTH = 4  # of the range that is searched backwards for matching messages
_Messages = list[dict[str, Any]]


def pages_by_time(
    service: Query, topic: str, spans: list[ReadRange], tags: list[str], *, page_size: int = MAX_PAGE
) -> Iterator[_Messages]:
    """Yield the messages of all *spans* by store time. The order within a queue is kept."""
    size = min(page_size, max(_LEAST_PAGE, _HELD // max(1, len(spans))))
    queues = [_messages(pages_of_queue(service, topic, span, tags, page_size=size)) for span in spans]
    merged = heapq.merge(*queues, key=_log_order)
    while page := list(itertools.islice(merged, page_size)):
        yield page


def newest(service: Query, topic: str, spans: list[ReadRange], tags: list[str], most: int) -> _Messages:
    """Return the newest *most* messages of all *spans*, which have ends, by store time."""
    found: _Messages = []
    for span in spans:
        found = heapq.nlargest(
            most, itertools.chain(found, _newest_of_queue(service, topic, span, tags, most)), _log_order
        )
    return found[::-1]


def _newest_of_queue(service: Query, topic: str, span: ReadRange, tags: list[str], most: int) -> Iterable[Any]:
    """Return up to *most* messages at the end of *span*; search backwards past messages that do not match."""
    assert span.end is not None
    found: deque[dict[str, Any]] = deque()
    end, size = span.end, most
    while end > span.start and len(found) < most:
        start = max(span.start, end - size)
        part = ReadRange(span.queue_id, start, end)
        older = deque(_messages(pages_of_queue(service, topic, part, tags)), maxlen=most - len(found))
        found.extendleft(reversed(older))
        end, size = start, size * _GROWTH
    return found


def _messages(pages: Iterator[_Messages]) -> Iterator[dict[str, Any]]:
    return itertools.chain.from_iterable(pages)


def _log_order(message: dict[str, Any]) -> tuple[int, int, int]:
    return message["store_timestamp_ms"], message["physical_offset"], message["queue_offset"]
