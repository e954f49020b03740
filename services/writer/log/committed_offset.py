"""Committed: the committed offset as the event loop knows it, and waiting for it to move."""

from __future__ import annotations

import asyncio


class Committed:
    """Lives on the event loop. The number itself is written to the checkpoint before it arrives here."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._moved = asyncio.Event()

    def move(self, offset: int) -> None:
        """It has moved up to *offset*, or stays."""
        if offset > self.offset:
            self.offset = offset
            self.wake()

    def wake(self) -> None:
        """Let everybody look again."""
        self._moved.set()
        self._moved = asyncio.Event()

    async def wait(self) -> None:
        """Until it has moved, or `wake`."""
        await self._moved.wait()
