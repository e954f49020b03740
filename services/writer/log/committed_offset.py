"""Committed: the event loop's copy of the committed offset, and waiting for it to move."""

from __future__ import annotations

import asyncio


class Committed:
    """The committed offset on the event loop. The checkpoint has every value before this object."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._moved = asyncio.Event()

    def move(self, offset: int) -> None:
        """Raise the offset to *offset*, if that is greater, and wake the waiters."""
        if offset > self.offset:
            self.offset = offset
            self.wake()

    def wake(self) -> None:
        """Wake all waiters."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def wait(self) -> None:
        """Block until the offset moves or `wake` is called."""
        await self._moved.wait()
