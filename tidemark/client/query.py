"""Query: the REST facade from Python, as far as pulls and lookups go. Answers are the JSON of docs, as dicts."""

from __future__ import annotations

from typing import Any, cast

import httpx
import orjson

from tidemark.client.settings import ClientSettings
from tidemark.errors import StoreError, UnavailableError
from tidemark.status import BY_REASON

Json = dict[str, Any]
_PROBLEM_MEMBERS = frozenset(
    {"type", "title", "status", "detail", "instance", "reason", "message"}
)  # RFC 9457, and ours


class Query:
    """A connection to one query service. Errors of the service are raised as the StoreError of their reason.

    url        default TIDEMARK_QUERY_URL, else http://127.0.0.1:8080
    timeout_s  for one answer; longer than any wait_ms
    transport  httpx's own by default
    """

    def __init__(
        self, url: str | None = None, *, timeout_s: float = 60.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url = url or ClientSettings().query_url
        self._http = httpx.Client(base_url=self.url, timeout=timeout_s, transport=transport)

    def watermark(self) -> Json:
        """How far is indexed and how far is committed."""
        return self.get("/v1/watermark")

    def pull(self, topic: str, queue_id: int, offset: int | str, **parameters: Any) -> Json:
        """Messages of one queue from *offset* (a number, earliest, latest).

        parameters: max_messages, max_bytes, tag (one or a list), wait_ms, body_encoding, semantics
        """
        return self.get(f"/v1/topics/{topic}/queues/{queue_id}/messages", offset=offset, **parameters)

    def offset_at(self, topic: str, queue_id: int, time: int | str, *, boundary: str = "lower") -> Json:
        """The queue offset at a store time: epoch milliseconds or RFC 3339."""
        return self.get(f"/v1/topics/{topic}/queues/{queue_id}/offset", time=time, boundary=boundary)

    def by_key(self, topic: str, key: str, **parameters: Any) -> Json:
        """Messages that carry *key*. parameters: from, to, limit, cursor, body_encoding."""
        return self.get(f"/v1/topics/{topic}/messages", key=key, **parameters)

    def message(self, offset_msg_id: str, **parameters: Any) -> Json:
        """One message by its offset message id. parameters: wait_ms, body_encoding."""
        return self.get(f"/v1/messages/{offset_msg_id}", **parameters)

    def get(self, path: str, **parameters: Any) -> Json:
        """Any path of the facade; a StoreError for a problem it answers, UnavailableError when nobody does."""
        try:
            response = self._http.get(
                path, params={name: value for name, value in parameters.items() if value is not None}
            )
        except httpx.TransportError as error:
            raise UnavailableError(f"{self.url}: {error}") from error
        if response.is_error:
            raise _problem(response)
        return cast(Json, orjson.loads(response.content))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Query:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _problem(response: httpx.Response) -> Exception:
    """The exception that a problem+json answer tells."""
    try:
        problem: Json = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        problem = {}
    text = str(problem.get("detail") or problem.get("title") or f"HTTP {response.status_code}")
    facts = {name: value for name, value in problem.items() if name not in _PROBLEM_MEMBERS and _is_fact(value)}
    return BY_REASON.get(str(problem.get("reason")), StoreError)(text, **facts)


def _is_fact(value: object) -> bool:
    return value is None or isinstance(value, str | int | float)
