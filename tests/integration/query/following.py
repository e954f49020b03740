"""Readers of followed answers (follow=true) over real HTTP."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx

EVENTS = "text/event-stream"


class Event(NamedTuple):
    """One server-sent event. data: None for an event without data."""

    name: str
    id: str
    data: dict[str, Any] | None


@contextlib.contextmanager
def following(
    client: httpx.Client, path: str, *, accept: str = "*/*", last_event_id: str | None = None, **parameters: Any
) -> Iterator[httpx.Response]:
    """Open a followed answer and require that it begins."""
    headers = {"Accept": accept} | ({} if last_event_id is None else {"Last-Event-ID": last_event_id})
    asked = {"follow": "true", **parameters}
    with client.stream("GET", path, params=asked, headers=headers, timeout=30) as answer:
        assert answer.status_code == 200, answer.read()
        yield answer


def lines_of(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """Yield the lines of NDJSON without heartbeats."""
    yield from (json.loads(line) for line in answer.iter_lines() if line)


def events_of(answer: httpx.Response) -> Iterator[Event]:
    """Yield server-sent events, as a browser reads them (WHATWG HTML 9.2.6); without data if only the id is new."""
    data: list[str] = []
    name, last_id, seen = "message", "", False
    for line in answer.iter_lines():
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if seen:
                yield Event(name, last_id, json.loads("\n".join(data)) if data else None)
            name, data, seen = "message", [], False
        elif field == "id":
            last_id, seen = value, True
        elif field == "event":
            name = value
        elif field == "data":
            data.append(value)
            seen = True
