"""The flushed and the committed offset: in the words that other processes read, and on the event loop."""

from __future__ import annotations

import asyncio

from tidemark.store.checkpoint import Checkpoint, Field
from tidemark.store.flushed import Flushed
from tidemark.store.wake import wake


class PublishedOffsets:
    """The two offsets in the store's mapped files. The flusher, or in `async` mode the appender, moves them."""

    def __init__(self, checkpoint: Checkpoint, flushed: Flushed) -> None:
        self._checkpoint = checkpoint
        self._committed = checkpoint.committed_offset  # nothing else moves it
        self._word = checkpoint.committed_word_address()
        self._flushed = flushed

    def flush(self, end: int, *, store_timestamp: int) -> None:
        """Publish that the log is synced up to *end*; *store_timestamp* (ms) is the last record's."""
        self._checkpoint.set(Field.PHYSIC_MESSAGE_TIMESTAMP, store_timestamp)
        self._flushed.set(end)

    def commit(self, end: int) -> bool:
        """Publish *end* as the committed offset and wake other processes. Return False if it is not greater."""
        if end <= self._committed:
            return False
        self._committed = end
        self._checkpoint.set(Field.CONFIRM_PHYSICAL_OFFSET, end)
        wake(self._word)
        return True


class Committed:
    """The committed offset on the event loop. The checkpoint has every value before this object."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self._moved: asyncio.Event | None = None  # of the waiters, if there are any

    def move(self, offset: int) -> None:
        """Raise the offset to *offset*, if that is greater, and wake the waiters."""
        if offset > self.offset:
            self.offset = offset
            self.wake()

    def wake(self) -> None:
        """Wake all waiters."""
        moved, self._moved = self._moved, None
        if moved is not None:
            moved.set()

    async def wait(self) -> None:
        """Block until the offset moves or `wake` is called."""
        if self._moved is None:
            self._moved = asyncio.Event()
        await self._moved.wait()
