"""GroupMetrics: the metrics of a member of a replication group, in all its roles."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.metrics.families import number, numbers
from tidemark.replication.known_state import KnownState

from .leadership import Leadership
from .writer_replication import WriterReplication


class GroupMetrics(Collector):
    """A collector that the metrics listener's threads call. It only reads single values, so it needs no lock.

    members  number of members in the settings
    writer   set while this member is the writer, else None
    """

    def __init__(self, members: int, known: KnownState, leadership: Leadership) -> None:
        self.writer: WriterReplication | None = None
        self._cut_bytes = self._compared_bytes = self._repaired_places = 0
        self._members = members
        self._known = known
        self._leadership = leadership

    def note_cut(self, count: int) -> None:
        """Note that a replica has cut uncommitted bytes."""
        self._cut_bytes += count

    def note_compared(self, count: int) -> None:
        """Note that *count* bytes of the log were compared with other members."""
        self._compared_bytes += count

    def note_repaired(self) -> None:
        """Note that a damaged place of the log was replaced by another member's bytes."""
        self._repaired_places += 1

    def collect(self) -> Iterator[Metric]:
        writer, state = self.writer, self._known.read()
        yield number("tidemark_replication_is_writer", writer is not None)
        yield number("tidemark_replication_members", self._members)
        yield number("tidemark_replication_truncated_bytes_total", self._cut_bytes)
        yield number("tidemark_replication_compared_bytes_total", self._compared_bytes)
        yield number("tidemark_replication_repaired_places_total", self._repaired_places)
        if state is not None:
            yield number("tidemark_replication_epoch", state.epoch)
            yield number("tidemark_replication_in_sync_members", len(state.in_sync))
            yield number("tidemark_replication_min_in_sync", state.min_in_sync)
        until_s = self._leadership.valid_until_s
        if writer is not None:
            lags = writer.lags
            yield numbers("tidemark_replication_lag_bytes", [((name,), lag.bytes) for name, lag in lags.items()])
            yield numbers("tidemark_replication_lag_seconds", [((name,), lag.seconds) for name, lag in lags.items()])
            changes = writer.set_changes
            yield numbers("tidemark_replication_set_changes_total", [((kind,), n) for kind, n in changes.items()])
            if until_s is not None:
                left_s = until_s - time.clock_gettime(time.CLOCK_BOOTTIME)
                yield number("tidemark_replication_lease_seconds_left", max(0.0, left_s))
