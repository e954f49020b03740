"""PageReads: reads of pages for one connection. A page is in memory until the client has taken it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from tidemark.read.cached import NotCachedError

from ..state.read_threads import ReadThreads, in_place

T = TypeVar("T")
MOST_AT_ONCE = 4  # pages of one connection that threads read
_POLL_S = 0.01


class Client(Protocol):
    """A connection, as the reads of its pages use it."""

    @property
    def is_full(self) -> bool:
        """True if so many bytes of answers are unsent that no further page should be read."""


class PageReads:
    """Runs reads as `ReadThreads` does, but none while the client is full.

    turns: shared by all reads of a connection on threads.
    """

    def __init__(self, threads: ReadThreads, client: Client, turns: asyncio.Semaphore) -> None:
        self._threads = threads
        self._client = client
        self._turns = turns

    async def read(self, function: Callable[[], T]) -> T:
        """Run *function* on a thread."""
        async with self._turns:
            while self._client.is_full:  # noqa: ASYNC110 - at most four tasks of a slow client poll
                await asyncio.sleep(_POLL_S)
            return await self._threads.read(function)

    async def read_in_place(self, function: Callable[[], T]) -> T:
        """Run *function* on the event loop if all its data is in memory and the client is not full, else as `read`."""
        if not self._client.is_full:
            try:
                return in_place(function)
            except NotCachedError:
                pass  # an error of the other attempt is not a consequence of this one
        return await self.read(function)
