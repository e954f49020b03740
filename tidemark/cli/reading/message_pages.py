"""Pages of messages out of a topic's queues: up to an end that is known, or for ever. Knows nothing of output."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tidemark.cli.reading.queue_places import (
    Place,
    PlaceKind,
    existing_offset_of,
    offset_of,
    queues_of,
    require_one_queue,
)
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.service_addresses import topic_path
from tidemark.client.consumer.long_poller import Fetcher
from tidemark.client.received_message import JSON, TopicQueue

if TYPE_CHECKING:
    from tidemark.client import Query

_WAIT_MS = 10_000  # a long poll that finds nothing is asked again
MAX_PAGE = 500
_TIMEOUT_S = 60.0
_NEW_QUEUES_S = 5.0  # between two looks for queues that the topic has got
_Messages = list[dict[str, Any]]


class Span(NamedTuple):
    """From where to where a queue is read. end: exclusive; None: for ever."""

    queue_id: int
    start: int
    end: int | None


def spans_of(
    service: Query, topic: str, queue_ids: list[int], first: Place, last: Place | None, *, follow: bool
) -> list[Span]:
    """Of the queues that are named, of all when none is; without *last* they end where they do now, or never.

    raises an OffsetError for an offset that the queue does not have
    """
    queues = queues_of(service, topic, queue_ids)
    for place, option in ((first, "--from"), (last, "--to")):
        if place is not None:
            require_one_queue(place, queues, option=option)
    stop = Place(PlaceKind.LATEST) if last is None and not follow else last
    return [_span(service, topic, each, first, stop) for each in queues]


def _span(service: Query, topic: str, queue: dict[str, Any], first: Place, stop: Place | None) -> Span:
    start = existing_offset_of(service, topic, queue, first)
    return Span(queue["queue_id"], start, None if stop is None else offset_of(service, topic, queue, stop))


def pages_of_queue(
    service: Query, topic: str, span: Span, tags: list[str], *, page_size: int = MAX_PAGE
) -> Iterator[_Messages]:
    """Messages of one queue, until the span's end or the queue's."""
    at, end = span.start, span.end
    path = f"{topic_path(topic)}/queues/{span.queue_id}/messages"
    while end is None or at < end:
        most = page_size if end is None else min(page_size, end - at)
        page = service.get(path, offset=at, max_messages=most, tag=tags or None, body_encoding="auto")
        yield _messages_of(topic, span, page)
        if page["next_offset"] == at:
            return
        at = page["next_offset"]


def _messages_of(topic: str, span: Span, page: dict[str, Any]) -> _Messages:
    """Those of *page* that the span holds, each with its queue; tells of damaged records."""
    for skipped in page["skipped"]:
        say(f"warning: the record at {skipped['physical_offset']} is damaged: {skipped['reason']}")
    found = [{"topic": topic, "queue_id": span.queue_id, **message} for message in page["messages"]]
    return [message for message in found if span.end is None or message["queue_offset"] < span.end]


def follow_queues(
    service: Query,
    topic: str,
    spans: list[Span],
    tags: list[str],
    *,
    page_size: int = MAX_PAGE,
    with_new_queues: bool = False,
) -> Iterator[_Messages]:
    """Messages of several queues as they come, by a long poll a queue. Ends when every span has its end.

    with_new_queues: read queues that the topic gets later, from their beginning
    """
    limits = {"max_messages": page_size, "tag": tags or None, "wait_ms": _WAIT_MS, "body_encoding": "auto"}
    left = {TopicQueue(topic, span.queue_id): span for span in spans if span.end is None or span.start < span.end}
    pulls = Fetcher(service.url, accept=JSON, parameters=limits, timeout_s=_TIMEOUT_S)
    known = {span.queue_id for span in spans}
    looked_at = time.monotonic()
    try:
        while left:
            if with_new_queues and time.monotonic() - looked_at >= _NEW_QUEUES_S:
                looked_at = time.monotonic()
                left |= {TopicQueue(topic, span.queue_id): span for span in _new_spans(service, topic, known)}
            for each, span in left.items():
                pulls.want(each, span.start)
            for fetched in pulls.fetched(_NEW_QUEUES_S if with_new_queues else _TIMEOUT_S):
                page = fetched.content()
                span = left.pop(fetched.queue)
                if found := _messages_of(topic, span, page):
                    yield found
                span = span._replace(start=page["next_offset"])
                if span.end is None or span.start < span.end:
                    left[fetched.queue] = span
            if pulls.unreachable is not None:
                raise pulls.unreachable[1]
    finally:
        pulls.close()


def _new_spans(service: Query, topic: str, known: set[int]) -> list[Span]:
    """Return the queues that are not *known* yet, each from its beginning, and add them."""
    new = [queue for queue in queues_of(service, topic, []) if queue["queue_id"] not in known]
    known.update(queue["queue_id"] for queue in new)
    return [Span(queue["queue_id"], queue["min_offset"], None) for queue in new]


def pages_by_key(
    service: Query, topic: str, key: str, *, from_ms: int | None, to_ms: int | None
) -> Iterator[_Messages]:
    """Messages that carry *key*, in the order of the log, over all queues. to_ms: inclusive."""
    cursor: str | None = None
    while True:
        asked = {"key": key, "from": from_ms, "to": to_ms, "cursor": cursor, "body_encoding": "auto"}
        page = service.get(f"{topic_path(topic)}/messages", **asked)
        yield [{"topic": topic, **message} for message in page["messages"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return
