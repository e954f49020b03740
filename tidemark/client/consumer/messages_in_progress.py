"""InWork: the messages of each queue that are being handled, and the offset below which all are finished."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from tidemark.client.received_message import TopicQueue


class InWork:
    """The messages in progress. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[TopicQueue, dict[int, None]] = {}  # queue offsets, in order
        self._count = 0

    @property
    def count(self) -> int:
        """Return the number of messages that have begun and not finished."""
        return self._count

    def begin(self, queue: TopicQueue, queue_offset: int) -> None:
        """Add a message. Messages of one queue must begin in order."""
        with self._changed:
            self._queues.setdefault(queue, {})[queue_offset] = None
            self._count += 1

    def finish(self, queue: TopicQueue, queue_offset: int) -> None:
        """Remove a handled message."""
        with self._changed:
            offsets = self._queues.get(queue, {})
            if queue_offset in offsets:  # otherwise `forget` has removed the queue
                del offsets[queue_offset]
                self._count -= 1
            self._changed.notify_all()

    def first_unfinished(self) -> dict[TopicQueue, int]:
        """Return the lowest offset in progress by queue: all messages below it are finished."""
        with self._changed:
            return {queue: next(iter(offsets)) for queue, offsets in self._queues.items() if offsets}

    def wait_below(self, most: int, timeout_s: float) -> bool:
        """Wait until fewer than *most* messages are in progress; return False after *timeout_s*."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count < most, timeout_s)

    def drain(self, queues: Iterable[TopicQueue], timeout_s: float) -> None:
        """Wait until no message of *queues* is in progress, for at most *timeout_s*."""
        wanted = set(queues)
        with self._changed:
            self._changed.wait_for(lambda: not any(self._queues.get(queue) for queue in wanted), timeout_s)

    def forget(self, queues: Iterable[TopicQueue]) -> None:
        """Remove *queues* and their messages in progress."""
        with self._changed:
            for queue in queues:
                self._count -= len(self._queues.pop(queue, {}))
            self._changed.notify_all()
