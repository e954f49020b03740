"""AppendCounts: what has become of appends, counted a batch at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric

from tidemark.errors import StoreError
from tidemark.metrics.families import number, numbers
from tidemark.metrics.topic_counts import TopicCounts
from tidemark.status import status_of

from ..batch.batch import Batch


class AppendCounts:
    """Filled by whoever appends and by the event loop, read by whoever scrapes. max_topics: with their own label."""

    def __init__(self, max_topics: int) -> None:
        self._appended = TopicCounts(
            limit=max_topics, messages="rocketmq_messages_in_total", size="rocketmq_throughput_in_total"
        )
        self._duplicates = 0  # counted by whoever appends: one at a time
        self._refused: dict[str, int] = {}  # by reason
        self._refusing = threading.Lock()

    def count(self, batches: Iterable[Batch]) -> None:
        """A group has been written: what each of its batches came to."""
        for batch in batches:
            appended = batch.appended
            if appended is None:
                if batch.error is not None:
                    self.refuse(batch.error)
            elif appended.duplicate:
                self._duplicates += 1
            else:
                size = appended.end_offset - appended.physical_offset
                self._appended.add(batch.key.topic, batch.count, size)

    def refuse(self, error: StoreError) -> None:
        """One was not taken."""
        reason = status_of(error).reason
        with self._refusing:
            self._refused[reason] = self._refused.get(reason, 0) + 1

    def families(self) -> Iterator[Metric]:
        """All of it."""
        with self._refusing:
            refused = list(self._refused.items())
        yield from self._appended.families()
        yield number("tidemark_duplicate_batches_total", self._duplicates)
        yield numbers("tidemark_refused_appends_total", (((reason,), count) for reason, count in refused))
