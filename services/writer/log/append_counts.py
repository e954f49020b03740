"""AppendCounts: counters of appended, duplicate and rejected batches."""

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
    """Counters that the appending thread and the event loop increment and the metrics listener reads.

    max_topics: number of topics with a label of their own.
    """

    def __init__(self, max_topics: int) -> None:
        self._appended = TopicCounts(
            limit=max_topics, messages="rocketmq_messages_in_total", size="rocketmq_throughput_in_total"
        )
        self._duplicates = 0  # written by the appending thread only, of which there is one at a time
        self._refused: dict[str, int] = {}  # by reason
        self._refusing = threading.Lock()

    def count(self, batches: Iterable[Batch]) -> None:
        """Count the batches of a group that has been written."""
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
        """Count a batch that was rejected with *error*."""
        reason = status_of(error).reason
        with self._refusing:
            self._refused[reason] = self._refused.get(reason, 0) + 1

    def families(self) -> Iterator[Metric]:
        """Yield the metric families."""
        with self._refusing:
            refused = list(self._refused.items())
        yield from self._appended.families()
        yield number("tidemark_duplicate_batches_total", self._duplicates)
        yield numbers("tidemark_refused_appends_total", (((reason,), count) for reason, count in refused))
