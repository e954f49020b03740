"""Reports of ended epochs, from Spark's tasks and from the understudy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import structlog

from .plan import EpochPlan
from .shards.shard_builder import executors_of
from .shards.understudy_hand_over import UNDERSTUDY

log = structlog.get_logger()


class EpochListener(Protocol):
    """Receiver of the rows of progress of each ended epoch. Every follower calls it, each from its own thread."""

    def epoch_finished(self, rows: Sequence[Mapping[str, Any]]) -> None: ...


class EpochReports:
    """Passes the rows of each epoch to *listeners*, and logs an event."""

    def __init__(self, plan: EpochPlan, listeners: Sequence[EpochListener]) -> None:
        self._plan = plan
        self._listeners = listeners

    def epoch_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Report an epoch's rows of progress."""
        for one in self._listeners:
            one.epoch_finished(rows)
        shards = self._plan.shards
        follower = rows[0]["follower"]
        log.info(
            "epoch_finished",
            engine="understudy" if follower == UNDERSTUDY else "spark",
            follower=follower,
            term=max(row["term"] for row in rows),
            watermark=min(row["end_offset"] for row in rows),
            records=sum(row["records"] for row in rows if row["shard"] < shards),
            keys=sum(row["records"] for row in rows if row["shard"] == shards),
            chunks=sum(row["chunks"] for row in rows),
            damages=sum(row["damages"] for row in rows),
            oddities=sum(row["oddities"] for row in rows),
            expired_files=sum(row["expired_files"] for row in rows),
            waited_s=round(max(row["waited_s"] for row in rows), 4),
            held_s=round(max(row["held_s"] for row in rows), 4),
            executors=executors_of(rows),
        )
