"""Inbox: what has arrived and waits for the appender thread, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable

from .batch import Batch

Task = Callable[[], None]  # something to be done between two batches


class Inbox:
    """A queue from the event loop to one thread. Its bound is the bytes in flight, which CommitLog counts."""

    def __init__(self) -> None:
        self._items: list[Batch | Task] = []
        self._changed = threading.Condition()
        self._closed = False

    def put(self, item: Batch | Task) -> None:
        """Add one."""
        with self._changed:
            self._items.append(item)
            self._changed.notify()

    def take(self) -> list[Batch | Task] | None:
        """Wait for something and take all of it; None when the inbox is closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._closed)
            items, self._items = self._items, []
        return items or None

    def close(self) -> None:
        """Nothing more comes; what is there is still taken."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def discard(self) -> None:
        """Close, and drop what is there."""
        with self._changed:
            self._items = []
            self._closed = True
            self._changed.notify()
