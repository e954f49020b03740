"""FollowMetrics: the metrics of a store that follows a RocketMQ broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.metrics.families import number
from tidemark.replication.followed_broker import FollowedBroker


class FollowMetrics(Collector):
    """A collector that the metrics listener's threads call. state: returns how the copy goes; end: the log's end."""

    def __init__(self, state: Callable[[], FollowedBroker], end: Callable[[], int]) -> None:
        self._state = state
        self._end = end

    def collect(self) -> Iterator[Metric]:
        state = self._state()
        yield number("tidemark_follow_connected", state.is_connected)
        yield number("tidemark_follow_log_end_offset", self._end())
        if state.behind_bytes is not None:
            yield number("tidemark_follow_behind_bytes", state.behind_bytes)
