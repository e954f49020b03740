"""Limit on the bytes of large answers in memory that are not sent yet because clients take them slowly."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tidemark.errors import InFlightLimitError

_RETRY_AFTER_MS = 1_000


class UnsentBytesLimit:
    """A limit on the bytes of all unsent answers together. A larger answer passes while there is no other."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._bytes = 0

    def require_room(self) -> None:
        """Raise InFlightLimitError if the limit is reached. Call it before reading data for an answer."""
        if self._bytes >= self._limit_bytes:
            raise self._refusal()

    @contextlib.contextmanager
    def held(self, size: int) -> Iterator[None]:
        """Count an answer of *size* bytes while it is sent; raise InFlightLimitError if it would exceed the limit."""
        self.take(size)
        try:
            yield
        finally:
            self.give(size)

    def take(self, size: int) -> None:
        """Count *size* bytes until `give`; raise InFlightLimitError if they would exceed the limit."""
        if self._bytes and self._bytes + size > self._limit_bytes:
            raise self._refusal()
        self._bytes += size

    def give(self, size: int) -> None:
        """End `take`: the bytes are sent or dropped."""
        self._bytes -= size

    def _refusal(self) -> InFlightLimitError:
        return InFlightLimitError(
            f"too many bytes of answers are waiting to be sent: at most {self._limit_bytes} "
            "(TIDEMARK_QUERY_MAX_UNTAKEN_BYTES)",
            limit_bytes=self._limit_bytes,
            retry_after_ms=_RETRY_AFTER_MS,
        )
