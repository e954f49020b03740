"""How much of large answers lies in memory because clients have not taken it yet."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tidemark.errors import InFlightLimitError

_RETRY_AFTER_MS = 1_000


class UntakenAnswers:
    """A limit on the bytes of all of them together. An answer larger than it passes while there is no other."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = 0

    def require_room(self) -> None:
        """InFlightLimitError when there is none, before anything is read."""
        if self._bytes >= self._limit_bytes:
            raise self._refusal()

    @contextlib.contextmanager
    def held(self, size: int) -> Iterator[None]:
        """While an answer of *size* bytes is sent. InFlightLimitError when it would be too much."""
        if self._bytes and self._bytes + size > self._limit_bytes:
            raise self._refusal()
        self._bytes += size
        try:
            yield
        finally:
            self._bytes -= size

    def _refusal(self) -> InFlightLimitError:
        return InFlightLimitError(
            "clients have not taken what they asked for", limit_bytes=self._limit_bytes, retry_after_ms=_RETRY_AFTER_MS
        )
