"""SentBefore: finds by the key index how much of a chunk an earlier attempt has sent, at any time in the past.

The writer's duplicate window is bounded. Therefore an attempt first waits until everything committed is visible, and
then looks up its first chunk. An attempt sends its first chunk alone: if the index does not have that chunk, it has
none of the others.

An earlier attempt may have sent only the first part of a chunk, because the input of a failing task ends early.
"""

from __future__ import annotations

import bisect
import contextlib
import time
from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from tidemark.client.rest.query import Query
from tidemark.errors import DeadlineExceededError, RequestConflictError, TopicNotFoundError
from tidemark.spark.source.visible import wait_until_visible
from tidemark.tls.credentials import Credentials

KeyOf = Callable[[int], str]
_FRESH_S = 10.0  # look up again after a longer pause: another attempt may have sent meanwhile


class SentBefore:
    """Lookup for one attempt. urls: the query services of all stores it sends to; without them nothing is looked up."""

    def __init__(self, urls: Sequence[str], *, timeout_s: float, credentials: Credentials | None = None) -> None:
        self._queries = [Query(url, timeout_s=timeout_s, credentials=credentials) for url in urls]
        self._timeout_s = timeout_s
        self._looked_s: float | None = None
        self._has_some = False

    def count(self, topic: str, unique_key: KeyOf, messages: int, body: bytes) -> int:
        """Return how many of a chunk's *messages*, counted from the first, are stored.

        unique_key  returns a message's key by its number in the chunk; body: of the first message

        Raises RequestConflictError if another body is stored under the key, since a replay must have the same rows, and
        DeadlineExceededError if committed messages do not become visible in time.
        """
        if not self._queries:
            return 0
        now = time.monotonic()
        is_fresh = self._looked_s is not None and now - self._looked_s < _FRESH_S
        self._looked_s = now
        if is_fresh and not self._has_some:
            return 0
        if not is_fresh:
            self._settle()
        found = max(_count(query, topic, unique_key, messages, body) for query in self._queries)
        self._has_some |= found > 0
        return found

    def _settle(self) -> None:
        if not all(wait_until_visible(query, self._timeout_s) for query in self._queries):
            raise DeadlineExceededError(
                f"committed messages did not become visible within {self._timeout_s:g} s; is the pipeline running?"
            )

    def close(self) -> None:
        """Close the connections."""
        for query in self._queries:
            query.close()


def _count(query: Query, topic: str, unique_key: KeyOf, messages: int, body: bytes) -> int:
    found = _messages(query, topic, unique_key(0))
    if not found:
        return 0
    if b64decode(found[0]["body"]) != body:
        raise RequestConflictError(
            f"{unique_key(0)} was sent with another body: the query must return the same rows when it is run again"
        )
    if len(found) > 1:  # an inner batch: it is indexed by its first key and stored as a whole
        return len(found)
    if _messages(query, topic, unique_key(messages - 1)):
        return messages
    return bisect.bisect_left(range(messages), 1, key=lambda number: not _messages(query, topic, unique_key(number)))


def _messages(query: Query, topic: str, unique_key: str) -> list[Any]:
    """Return the messages of the record with this key."""
    with contextlib.suppress(TopicNotFoundError):
        path = f"/v1/topics/{quote(topic, safe='')}/messages"
        found = query.get(path, unique_key=unique_key, limit=1, body_encoding="base64")["messages"]
        return list(found)
    return []
