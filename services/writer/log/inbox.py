"""Inbox: what has arrived and waits to be appended, in order."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..batch.batch import Batch

Task = Callable[[], None]  # something to be done between two batches


class Inbox:
    """A queue to whoever appends, one at a time: a thread, or the event loop when it is little.

    Its bound is the bytes in flight, which CommitLog counts.
    """

    def __init__(self) -> None:
        self._items: list[Batch | Task] = []
        self._changed = threading.Condition()
        self._taken = False  # somebody appends what was taken
        self._closed = False

    def __len__(self) -> int:
        """How many wait; a moment old."""
        return len(self._items)

    def put(self, item: Batch | Task) -> None:
        """Add one."""
        with self._changed:
            self._items.append(item)
            self._changed.notify()

    def add(self, batch: Batch) -> None:
        """Add one without waking the thread: `take_little`, or `wake`, comes soon."""
        with self._changed:
            self._items.append(batch)

    def wake(self) -> None:
        """Let the thread look."""
        with self._changed:
            self._changed.notify()

    def take(self) -> list[Batch | Task] | None:
        """For the thread: wait for something and take all of it, then `give_back`; None when closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: not self._taken and (self._items or self._closed))
            return self._take() or None

    def take_little(self, limit_bytes: int) -> list[Batch | Task]:
        """All of it, for whoever is not the thread, then `give_back`; [] when the thread is at work or should be."""
        with self._changed:
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
        """What was taken has been appended: the next one may take."""
        with self._changed:
            self._taken = False
            if self._items or self._closed:
                self._changed.notify()

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
