"""Inbox: the queue of batches and tasks that wait to be appended."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..batch.batch import Batch

Task = Callable[[], None]  # runs between two batches


class Inbox:
    """A queue with two consumers, the appender thread and, for little, the event loop. Only one appends at a time.

    CommitLog bounds it by the bytes in flight.
    """

    def __init__(self) -> None:
        self._items: list[Batch | Task] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._taken = False  # a consumer is appending the items that it took
        self._closed = False

    def __len__(self) -> int:
        """Return the number of waiting items; the result may be slightly stale."""
        return len(self._items)

    def put(self, item: Batch | Task) -> None:
        """Add an item and wake the thread."""
        with self._lock:
            self._items.append(item)
            self._changed.notify()

    def add(self, batch: Batch) -> None:
        """Add a batch without waking the thread; the caller must call `take_little` or `wake` soon."""
        with self._lock:
            self._items.append(batch)

    def wake(self) -> None:
        """Wake the thread."""
        with self._lock:
            self._changed.notify()

    def take(self) -> list[Batch | Task] | None:
        """Block until there are items and take all; call `give_back` after them. None if closed and empty.

        For the appender thread.
        """
        with self._lock:
            self._changed.wait_for(lambda: not self._taken and (self._items or self._closed))
            return self._take() or None

    def take_alone(self, batch: Batch, limit_bytes: int) -> bool:
        """Take *batch*, which was not added, if it is little, nothing waits, and the thread is idle.

        The event loop calls it, and calls `give_back` afterwards.
        """
        with self._lock:
            may_take = not (self._taken or self._closed or self._items) and batch.size <= limit_bytes
            self._taken |= may_take
        return may_take

    def take_little(self, limit_bytes: int) -> list[Batch | Task]:
        """Take all items, if they are little and the thread is idle, otherwise []; call `give_back` after them.

        For the event loop.
        """
        with self._lock:
            may_take = not self._taken and not self._closed and self._is_little(limit_bytes)
            return self._take() if may_take else []

    def _take(self) -> list[Batch | Task]:
        items, self._items = self._items, []
        self._taken = bool(items)
        return items

    def _is_little(self, limit_bytes: int) -> bool:
        size = 0
        for item in self._items:
            if not isinstance(item, Batch) or (size := size + item.size) > limit_bytes:
                return False
        return size > 0

    def give_back(self) -> None:
        """Allow the next take, after the items taken before were appended."""
        with self._lock:
            self._taken = False
            if self._items or self._closed:
                self._changed.notify()

    def close(self) -> None:
        """Close the queue: `take` returns the waiting items, and then None."""
        with self._lock:
            self._closed = True
            self._changed.notify()

    def discard(self) -> None:
        """Close and drop the waiting items."""
        with self._lock:
            self._items = []
            self._closed = True
            self._changed.notify()
