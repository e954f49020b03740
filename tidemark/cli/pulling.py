"""Pages of messages out of a topic's queues: up to an end that is known, or for ever. Knows nothing of output."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from tidemark.cli.addresses import topic_path
from tidemark.cli.failures import say
from tidemark.cli.places import Place, PlaceKind, existing_offset_of, offset_of, queues_of, require_one_queue

if TYPE_CHECKING:
    from tidemark.client import Query

_WAIT_MS = 10_000  # a long poll that finds nothing is asked again
MAX_PAGE = 500
_PAGES_AHEAD = 8  # of all queues that are followed, together
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
    service: Query, topic: str, span: Span, tags: list[str], *, page_size: int = MAX_PAGE, wait_ms: int | None = None
) -> Iterator[_Messages]:
    """Messages of one queue. wait_ms: a long poll at its end; without, it ends there whatever the span says."""
    at, end = span.start, span.end
    path = f"{topic_path(topic)}/queues/{span.queue_id}/messages"
    while end is None or at < end:
        most = page_size if end is None else min(page_size, end - at)
        page = service.get(path, offset=at, max_messages=most, tag=tags or None, wait_ms=wait_ms, body_encoding="auto")
        for skipped in page["skipped"]:
            say(f"warning: the record at {skipped['physical_offset']} is damaged: {skipped['reason']}")
        found = [{"topic": topic, "queue_id": span.queue_id, **message} for message in page["messages"]]
        yield [message for message in found if end is None or message["queue_offset"] < end]
        if page["next_offset"] == at and wait_ms is None:
            return
        at = page["next_offset"]


def follow_queues(
    service: Query, topic: str, spans: list[Span], tags: list[str], *, page_size: int = MAX_PAGE
) -> Iterator[_Messages]:
    """Messages of several queues as they come: a thread a queue, which waits in a long poll of its own.

    What one of them raises is raised here. Ends when every span has its end.
    """
    pages: queue.Queue[_Messages | Exception | None] = queue.Queue(_PAGES_AHEAD)

    def run(span: Span) -> None:
        try:
            for page in pages_of_queue(service, topic, span, tags, page_size=page_size, wait_ms=_WAIT_MS):
                if page:
                    pages.put(page)
            pages.put(None)
        except Exception as error:  # raised again by the thread that prints
            pages.put(error)

    for span in spans:
        threading.Thread(target=run, args=(span,), daemon=True, name=f"queue-{span.queue_id}").start()
    running = len(spans)
    while running:
        page = pages.get()
        if page is None:
            running -= 1
        elif isinstance(page, Exception):
            raise page
        else:
            yield page


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
