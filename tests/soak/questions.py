"""Questions: one REST request each, with its answer in the history's form."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import orjson

from tests.bodies import body_of
from tests.soak.history import OK, UNAVAILABLE, Answer, HistoryFile, Seen
from tests.soak.messages import content_of_body
from tidemark.format.elements import decode_elements
from tidemark.format.properties import decode_properties
from tidemark.format.record import Record, decode_record
from tidemark.format.sys_flag import INNER_BATCH_FLAGS

Json = dict[str, Any]
Facts = dict[str, Any]
_TIMEOUT_S = 6.0  # longer than any wait_ms
_UNAVAILABLE_REASONS = frozenset({"STORE_CLOSED"})  # an answer of a stopping service
_RECORDS, _NDJSON = "application/octet-stream", "application/x-ndjson"


class Questions:
    """Sends requests of one client to the query service. Every answer goes into the history."""

    def __init__(self, client: str, url: str, history: HistoryFile, *, final: bool = False) -> None:
        self._client = client
        self._history = history
        self._final = final
        self._http = httpx.Client(base_url=url, timeout=_TIMEOUT_S)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def pull(self, topic: str, queue_id: int, offset: int | str, *, form: str = "json", **arguments: Any) -> Answer:
        """Pull messages from *offset* on. form: json, ndjson, or records (as stored, with whole inner batches)."""
        kind, accept = {"records": ("records", _RECORDS), "ndjson": ("pull", _NDJSON)}.get(form, ("pull", "*/*"))
        known: Facts = {
            "topic": topic,
            "queue_id": queue_id,
            "requested_offset": None if isinstance(offset, str) else offset,
        }
        path = f"/v1/topics/{topic}/queues/{queue_id}/messages"
        return self._ask(kind, path, known, _pulled, {"offset": offset, **arguments}, accept=accept)

    def bounds(self, topic: str, queue_id: int) -> Answer:
        """Return minimum and maximum offset."""
        known: Facts = {"topic": topic, "queue_id": queue_id}
        return self._ask("bounds", f"/v1/topics/{topic}/queues/{queue_id}", known, _with_bounds)

    def watermark(self) -> Answer:
        """Return the watermark."""
        return self._ask("watermark", "/v1/watermark", {}, _positioned)

    def offset_at(self, topic: str, queue_id: int, time_ms: int, boundary: str) -> Answer:
        """Return a queue offset by store time."""
        known: Facts = {"topic": topic, "queue_id": queue_id, "time_ms": time_ms, "boundary": boundary}
        path = f"/v1/topics/{topic}/queues/{queue_id}/offset"
        return self._ask("offset_by_time", path, known, _timed, {"time": time_ms, "boundary": boundary})

    def by_id(self, topic: str, content: str, path: str, **arguments: Any) -> Answer:
        """Look up the message *content* by the path of its id or place."""
        return self._ask("by_id", path, {"topic": topic, "wanted": content}, _looked_up, arguments)

    def by_key(self, topic: str, content: str, **arguments: Any) -> Answer:
        """Look up the message *content* by key=, its name, or by unique_key=."""
        known: Facts = {"topic": topic, "wanted": content}
        return self._ask("by_key", f"/v1/topics/{topic}/messages", known, _found, arguments)

    def _ask(
        self,
        kind: str,
        path: str,
        known: Facts,
        read: Callable[[httpx.Response], Facts],
        arguments: Mapping[str, Any] | None = None,
        *,
        accept: str = "*/*",
    ) -> Answer:
        invoked = time.monotonic()
        try:
            response = self._http.get(path, params=dict(arguments or {}), headers={"Accept": accept})
            completed = time.monotonic()
            facts = {"outcome": OK, **read(response)} if response.is_success else {"outcome": _reason(response)}
        except httpx.TransportError:
            completed, facts = time.monotonic(), {"outcome": UNAVAILABLE}
        answer = Answer(self._client, kind, invoked, completed, final=self._final, **{**known, **facts})
        self._history.add(answer)
        return answer


def _reason(response: httpx.Response) -> str:
    reason = str(orjson.loads(response.content).get("reason"))
    return UNAVAILABLE if reason in _UNAVAILABLE_REASONS else reason


# -- answers -------------------------------------------------------------------------------------------------------


def _position(answer: Json) -> Facts:
    watermark = answer["watermark"]
    return {
        "term": watermark["term"],
        "watermark": watermark["physical_offset"],
        "committed": answer["committed_offset"],
    }


def _positioned(response: httpx.Response) -> Facts:
    return _position(orjson.loads(response.content))


def _with_bounds(response: httpx.Response) -> Facts:
    answer = orjson.loads(response.content)
    return {**_position(answer), "min_offset": answer["min_offset"], "max_offset": answer["max_offset"]}


def _timed(response: httpx.Response) -> Facts:
    answer = orjson.loads(response.content)
    return {**_with_bounds(response), "offset": answer["offset"], "store_ms": answer["store_timestamp_ms"]}


def _looked_up(response: httpx.Response) -> Facts:
    answer = orjson.loads(response.content)
    return {**_position(answer), "seen": tuple(_seen(row, answer["queue_id"]) for row in answer["messages"])}


def _found(response: httpx.Response) -> Facts:
    answer = orjson.loads(response.content)
    seen = tuple(_seen(row, row["queue_id"]) for row in answer["messages"])
    return {**_position(answer), "seen": seen, "skipped": len(answer["skipped"])}


def _pulled(response: httpx.Response) -> Facts:
    if response.headers["content-type"] == "application/json":
        answer = orjson.loads(response.content)
        seen = tuple(_seen(row, answer["queue_id"]) for row in answer["messages"])
        facts = {**_with_bounds(response), "skipped": len(answer["skipped"]), "next_offset": answer["next_offset"]}
        return {**facts, "seen": seen}
    if response.headers["content-type"] == _NDJSON:
        queue_id = int(response.headers["Tidemark-Queue-Id"])
        seen = tuple(_seen(orjson.loads(line), queue_id) for line in response.content.splitlines())
    else:
        seen = tuple(_seen_in_records(response.content))
    return {**_of_headers(response.headers), "seen": seen}


def _of_headers(headers: httpx.Headers) -> Facts:
    names = {
        "term": "Term",
        "watermark": "Watermark",
        "committed": "Committed-Offset",
        "min_offset": "Min-Offset",
        "max_offset": "Max-Offset",
        "next_offset": "Next-Offset",
    }
    skipped = len(orjson.loads(headers["Tidemark-Skipped"]))
    return {**{name: int(headers[f"Tidemark-{header}"]) for name, header in names.items()}, "skipped": skipped}


def _seen(row: Json, queue_id: int) -> Seen:
    body = body_of(row)
    return Seen(queue_id, row["queue_offset"], row["physical_offset"], row["store_timestamp_ms"], content_of_body(body))


def _seen_in_records(data: bytes) -> list[Seen]:
    """Return the messages of records as stored, with their ends."""
    seen: list[Seen] = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        record = decode_record(memoryview(data)[at : at + size])
        bodies, first = [record.body], record.queue_offset
        if record.sys_flag & INNER_BATCH_FLAGS == INNER_BATCH_FLAGS:
            bodies, first = [element.body for element in decode_elements(record.body)], _inner_base(record)
        end = record.physical_offset + size
        seen += [
            Seen(
                record.queue_id,
                first + i,
                record.physical_offset,
                record.store_timestamp,
                content_of_body(body),
                end,
            )
            for i, body in enumerate(bodies)
        ]
        at += size
    return seen


def _inner_base(record: Record) -> int:
    return int(decode_properties(record.properties)["INNER_BASE"])
