"""BusyPolling: keeps the event loop awake for some microseconds after an answer, while that pays.

A client that sends its next request as soon as it has an answer finds the loop asleep otherwise. On a virtual machine
the wake-up, and work with cold caches, take longer than a lookup.
"""

from __future__ import annotations

import asyncio
import time

_MOST_MISSES = 4  # in succession; then only every _RARELY-th answer is followed by polling
_RARELY = 16


class BusyPolling:
    """Polling of one event loop, for at most *window_us* microseconds at a time; 0: never."""

    def __init__(self, window_us: int) -> None:
        self._window_s = window_us / 1e6
        self._misses = 0
        self._answers = 0  # since polling was found not to pay
        self._until = 0.0  # monotonic; 0: a request has arrived
        self._is_polling = False

    def answered(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to poll after an answer, if requests have arrived in time lately."""
        if not self._window_s:
            return
        if self._misses >= _MOST_MISSES:
            self._answers += 1
            if self._answers % _RARELY:
                return
        self._until = time.monotonic() + self._window_s
        if not self._is_polling:
            self._is_polling = True
            loop.call_soon(self._poll, loop)

    def arrived(self) -> None:
        """Note that a client has sent something."""
        if self._is_polling:
            self._until, self._misses = 0.0, 0

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        if time.monotonic() < self._until:
            loop.call_soon(self._poll, loop)  # the loop then looks for events without a wait
            return
        self._is_polling = False
        if self._until:
            self._misses += 1
