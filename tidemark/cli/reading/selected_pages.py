"""Pages of the messages of a Selection, without a group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tidemark.cli.reading.merged_pages import newest, pages_by_time
from tidemark.cli.reading.message_pages import (
    MAX_PAGE,
    ReadRange,
    follow_queues,
    pages_by_key,
    pages_of_queue,
    spans_of,
)
from tidemark.cli.reading.queue_places import PlaceKind
from tidemark.cli.reading.selection import Selection

if TYPE_CHECKING:
    from tidemark.client import Query

_Pages = Iterator[list[dict[str, Any]]]


def selected_pages(service: Query, topic: str, asked: Selection) -> _Pages:
    """Yield the messages of *asked*, which fit together; more than its maximum."""
    if asked.key is not None:
        first, last = asked.first, asked.last
        from_ms = first.value if first.kind is PlaceKind.TIME else None
        return pages_by_key(service, topic, asked.key, from_ms=from_ms, to_ms=None if last is None else last.value - 1)
    if asked.tail is not None:
        return _tail(service, topic, asked, asked.tail)
    spans = spans_of(service, topic, asked.queue_ids, asked.first, asked.last, follow=asked.follow)
    if asked.follow:
        return _follow(service, topic, asked, spans)
    page_size = _page_size(asked)
    if asked.by_time:
        return pages_by_time(service, topic, spans, asked.tags, page_size=page_size)
    return (page for span in spans for page in pages_of_queue(service, topic, span, asked.tags, page_size=page_size))


def _tail(service: Query, topic: str, asked: Selection, most: int) -> _Pages:
    """Yield the newest messages, and with `follow` the ones that arrive after them."""
    spans = spans_of(service, topic, asked.queue_ids, asked.first, asked.last, follow=False)
    yield newest(service, topic, spans, asked.tags, most)
    if asked.follow and asked.last is None:
        after = [ReadRange(span.queue_id, span.end, None) for span in spans if span.end is not None]
        yield from _follow(service, topic, asked, after)


def _follow(service: Query, topic: str, asked: Selection, spans: list[ReadRange]) -> _Pages:
    new = not asked.queue_ids and asked.last is None
    return follow_queues(service, topic, spans, asked.tags, page_size=_page_size(asked), with_new_queues=new)


def _page_size(asked: Selection) -> int:
    return min(MAX_PAGE, asked.most or MAX_PAGE)
