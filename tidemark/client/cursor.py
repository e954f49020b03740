"""Cursor: where a consumer is in one queue, and what of it was fetched already and not handed out yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tidemark.client.received import ReceivedMessage, TopicQueue


class _Page(NamedTuple):
    messages: deque[ReceivedMessage]
    next_offset: int


class Cursor:
    """One queue of a consumer.

    position   the next queue offset to hand out; earliest or latest until the first answer tells which that is
    fetch_at   the next queue offset to fetch: behind what is buffered
    committed  what the group has on record, as far as this consumer knows; None: nothing
    """

    def __init__(self, queue: TopicQueue, position: int | str, *, committed: int | None = None) -> None:
        self.queue = queue
        self.position = position
        self.fetch_at = position
        self.committed = committed
        self.max_offset: int | None = None  # of the queue, as the last answer told
        self.is_paused = False
        self._pages: deque[_Page] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is buffered."""
        return not self._pages

    @property
    def pages(self) -> int:
        """Pages that are buffered."""
        return len(self._pages)

    def seek(self, position: int | str) -> None:
        """Go on at *position*; what is buffered is forgotten."""
        self._pages.clear()
        self.position = self.fetch_at = position

    def add(self, messages: list[ReceivedMessage], *, requested_offset: int, next_offset: int, max_offset: int) -> None:
        """Buffer the messages from *requested_offset* to *next_offset*; some of them may have been filtered out."""
        if isinstance(self.position, str):
            self.position = requested_offset
        self.fetch_at = next_offset
        self.max_offset = max_offset
        self._pages.append(_Page(deque(messages), next_offset))
        self._step_over()

    def take(self, most: int, wanted: Callable[[ReceivedMessage], bool]) -> list[ReceivedMessage]:
        """Hand out at most *most* of the buffered messages, in order, without those that are not *wanted*."""
        taken: list[ReceivedMessage] = []
        while self._pages and len(taken) < most:
            message = self._pages[0].messages.popleft()
            self.position = message.queue_offset + 1
            if wanted(message):
                taken.append(message)
            self._step_over()
        return taken

    def _step_over(self) -> None:
        """Past the ends of pages that are used up."""
        while self._pages and not self._pages[0].messages:
            self.position = self._pages.popleft().next_offset


Cursors = Mapping[TopicQueue, Cursor]
