"""InWork: which messages of each queue are being handled, and how far a queue is handled without a gap."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from tidemark.client.received_message import TopicQueue


class InWork:
    """Safe for several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._queues: dict[TopicQueue, dict[int, None]] = {}  # queue offsets, in order
        self._count = 0

    @property
    def count(self) -> int:
        """Messages begun and not finished."""
        return self._count

    def begin(self, queue: TopicQueue, queue_offset: int) -> None:
        """A message is about to be handled; of one queue in order."""
        with self._changed:
            self._queues.setdefault(queue, {})[queue_offset] = None
            self._count += 1

    def finish(self, queue: TopicQueue, queue_offset: int) -> None:
        """It has been dealt with."""
        with self._changed:
            offsets = self._queues.get(queue, {})
            if queue_offset in offsets:  # else the queue was forgotten meanwhile
                del offsets[queue_offset]
                self._count -= 1
            self._changed.notify_all()

    def first_unfinished(self) -> dict[TopicQueue, int]:
        """By queue, the least offset in work: below it everything has been dealt with."""
        with self._changed:
            return {queue: next(iter(offsets)) for queue, offsets in self._queues.items() if offsets}

    def wait_below(self, most: int, timeout_s: float) -> bool:
        """Until fewer than *most* are in work, at most *timeout_s*; whether it came so far."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count < most, timeout_s)

    def drain(self, queues: Iterable[TopicQueue], timeout_s: float) -> None:
        """Until nothing of *queues* is in work, at most *timeout_s*."""
        wanted = set(queues)
        with self._changed:
            self._changed.wait_for(lambda: not any(self._queues.get(queue) for queue in wanted), timeout_s)

    def forget(self, queues: Iterable[TopicQueue]) -> None:
        """*queues* are read no more; what of them is still in work counts no more."""
        with self._changed:
            for queue in queues:
                self._count -= len(self._queues.pop(queue, {}))
            self._changed.notify_all()
