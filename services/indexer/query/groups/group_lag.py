"""GroupLag: the lag of each consumer group in each topic, as metrics with a bounded number of series."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

from prometheus_client.core import Metric

from tidemark.errors import StoreError
from tidemark.metrics.families import numbers
from tidemark.metrics.topic_counts import OTHER
from tidemark.read.lookup.offset_by_time import unit_time
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark

from .consumer_offsets import ConsumerOffset, ConsumerOffsets

_SAYS_NOTHING = (StoreError, OSError, ValueError)  # one broken queue must not prevent all metrics


class Lag(NamedTuple):
    """Number of messages at or after the group's offset, and milliseconds since the oldest of them was stored."""

    messages: int = 0
    latency_ms: int = 0


class GroupLag:
    """Lag of every queue in which a group has an offset. limit: most pairs of topic and group with their own labels."""

    def __init__(self, store: StoreReader, offsets: ConsumerOffsets, *, limit: int) -> None:
        self._store = store
        self._offsets = offsets
        self._limit = limit

    def families(self) -> Iterator[Metric]:
        """Yield both gauges. Queues that do not exist, or that cannot be read now, are left out."""
        lags: dict[tuple[str, str], Lag] = {}
        watermark = self._store.watermark()
        for offset in self._offsets.all():
            try:
                lag = self._of_queue(offset, watermark)
            except _SAYS_NOTHING:
                continue
            pair = (offset.topic, offset.group)
            if pair not in lags and len(lags) >= self._limit:
                pair = (OTHER, OTHER)
            before = lags.get(pair, Lag())
            lags[pair] = Lag(before.messages + lag.messages, max(before.latency_ms, lag.latency_ms))
        yield numbers("rocketmq_consumer_lag_messages", ((pair, lag.messages) for pair, lag in lags.items()))
        yield numbers("rocketmq_consumer_lag_latency", ((pair, lag.latency_ms) for pair, lag in lags.items()))

    def _of_queue(self, offset: ConsumerOffset, watermark: Watermark) -> Lag:
        queue = self._store.queue(offset.topic, offset.queue_id)
        bounds = self._store.bounds(queue, watermark)
        next_offset = max(offset.offset, bounds.min_offset)
        messages = bounds.max_offset - next_offset
        if messages <= 0:
            return Lag()
        stored_ms = unit_time(queue, self._store.log, queue.locate(next_offset, bounds.units))
        return Lag(messages, max(0, time.time_ns() // 1_000_000 - stored_ms) if stored_ms > 0 else 0)
