"""Bell: wakes a follower, and says which of its queues have grown."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ..queue_allocation import Queue


class Bell:
    """Belongs to one event loop and one waiting coroutine. grown: queues that count as grown at first."""

    def __init__(self, grown: Iterable[Queue]) -> None:
        self._grown = set(grown)
        self._has_rung = False
        self._waiting: asyncio.Future[None] | None = None

    def ring(self, queue: Queue | None = None) -> None:
        """End the wait of the coroutine, or its next one. queue: a queue that has grown."""
        if queue is not None:
            self._grown.add(queue)
        self._has_rung = True
        if self._waiting is not None:
            _end(self._waiting)

    def take(self) -> set[Queue]:
        """Return the queues that have grown since the last call."""
        grown, self._grown = self._grown, set()
        self._has_rung = False
        return grown

    async def wait(self, timeout_s: float) -> None:
        """Return when the bell has rung since `take`, at the latest after *timeout_s*."""
        if self._has_rung:
            return
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timeout = loop.call_later(max(0.0, timeout_s), _end, self._waiting)
        try:
            await self._waiting
        finally:
            timeout.cancel()
            self._waiting = None


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
