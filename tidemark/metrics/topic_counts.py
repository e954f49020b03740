"""TopicCounts: messages and bytes by topic, in a bounded number of series."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from prometheus_client.core import Metric

from .families import numbers

OTHER = "other"  # label of topics beyond the limit; a topic of this name is counted with them


class TopicCounts:
    """Counters by topic, updated per batch or response by any thread. The first *limit* topics have their own label."""

    def __init__(self, *, limit: int, messages: str, size: str) -> None:
        self._limit = limit
        self._names = messages, size
        self._counts: dict[str, tuple[int, int]] = {}
        self._changing = threading.Lock()

    def add(self, topic: str, messages: int, size: int) -> None:
        """Count *messages* with a total of *size* bytes."""
        with self._changing:
            if topic not in self._counts and len(self._counts) >= self._limit:
                topic = OTHER
            before = self._counts.get(topic, (0, 0))
            self._counts[topic] = before[0] + messages, before[1] + size

    def families(self) -> Iterator[Metric]:
        """Yield both counters."""
        with self._changing:
            counts = list(self._counts.items())
        for which, name in enumerate(self._names):
            yield numbers(name, (((topic,), pair[which]) for topic, pair in counts))
