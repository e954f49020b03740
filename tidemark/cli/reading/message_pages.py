"""Pages of messages from a topic's queues, up to a known end or endlessly. Does no output except warnings."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tidemark.cli.reading.queue_places import (
    PlaceKind,
    StartPlace,
    existing_offset_of,
    offset_of,
    queues_of,
    require_one_queue,
)
from tidemark.cli.terminal.exit_status import say
from tidemark.cli.terminal.service_addresses import topic_path
from tidemark.client.answers import PullAnswer
from tidemark.client.consumer.long_poller import Fetcher
from tidemark.client.received_message import JSON, TopicQueue

if TYPE_CHECKING:
    from tidemark.client import Query

_WAIT_MS = 10_000  # a long poll without messages is repeated after this time
MAX_PAGE = 500
_TIMEOUT_S = 60.0
_NEW_QUEUES_S = 5.0  # interval of checks for new queues of the topic
_Messages = list[dict[str, Any]]


class ReadRange(NamedTuple):
    """The range in which a queue is read. end: exclusive; None: without end."""

    queue_id: int
    start: int
    end: int | None


def spans_of(
    service: Query, topic: str, queue_ids: list[int], first: StartPlace, last: StartPlace | None, *, follow: bool
) -> list[ReadRange]:
    """Return the ranges of the named queues, or of all. Without *last*, they end at the current ends, or never.

    Raises OffsetError for an offset that the queue does not have.
    """
    queues = queues_of(service, topic, queue_ids)
    for place, option in ((first, "--from"), (last, "--to")):
        if place is not None:
            require_one_queue(place, queues, option=option)
    stop = StartPlace(PlaceKind.LATEST) if last is None and not follow else last
    return [_span(service, topic, each, first, stop) for each in queues]


def _span(service: Query, topic: str, queue: dict[str, Any], first: StartPlace, stop: StartPlace | None) -> ReadRange:
    start = existing_offset_of(service, topic, queue, first)
    return ReadRange(queue["queue_id"], start, None if stop is None else offset_of(service, topic, queue, stop))


def pages_of_queue(
    service: Query, topic: str, span: ReadRange, tags: list[str], *, page_size: int = MAX_PAGE
) -> Iterator[_Messages]:
    """Yield messages of one queue, until the end of the span or of the queue."""
    at, end = span.start, span.end
    while end is None or at < end:
        most = page_size if end is None else min(page_size, end - at)
        page = service.pull(topic, span.queue_id, at, max_messages=most, tag=tags or None, body_encoding="auto")
        yield _messages_of(topic, span, page)
        if page["next_offset"] == at:
            return
        at = page["next_offset"]


def _messages_of(topic: str, span: ReadRange, page: PullAnswer) -> _Messages:
    """Return the messages of *page* in the span, each with its queue; print warnings for damaged records."""
    for skipped in page["skipped"]:
        say(f"warning: the record at {skipped['physical_offset']} is damaged: {skipped['reason']}")
    wanted = [message for message in page["messages"] if span.end is None or message["queue_offset"] < span.end]
    return [{"topic": topic, "queue_id": span.queue_id, **message} for message in wanted]


def follow_queues(
    service: Query,
    topic: str,
    spans: list[ReadRange],
    tags: list[str],
    *,
    page_size: int = MAX_PAGE,
    with_new_queues: bool = False,
) -> Iterator[_Messages]:
    """Yield messages of several queues as they arrive, with one long poll per queue. End when every span has ended.

    with_new_queues: also read queues that are added to the topic later, from their start
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


def _new_spans(service: Query, topic: str, known: set[int]) -> list[ReadRange]:
    """Return spans of the queues that are not *known* yet, from their start, and add them to *known*."""
    new = [queue for queue in queues_of(service, topic, []) if queue["queue_id"] not in known]
    known.update(queue["queue_id"] for queue in new)
    return [ReadRange(queue["queue_id"], queue["min_offset"], None) for queue in new]


def pages_by_key(
    service: Query, topic: str, key: str, *, from_ms: int | None, to_ms: int | None
) -> Iterator[_Messages]:
    """Yield messages that have *key*, in log order over all queues. to_ms: inclusive."""
    cursor: str | None = None
    while True:
        asked = {"key": key, "from": from_ms, "to": to_ms, "cursor": cursor, "body_encoding": "auto"}
        page = service.get(f"{topic_path(topic)}/messages", **asked)
        yield [{"topic": topic, **message} for message in page["messages"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return
