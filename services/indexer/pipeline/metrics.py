"""PipelineMetrics: sums over ended epochs, and the marks at the time of a scrape."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from tidemark.errors import CorruptStoreError
from tidemark.metrics.buckets import Buckets
from tidemark.metrics.families import histogram, number, numbers
from tidemark.store.marks import Marks

from .plan import EpochPlan
from .shards.scrub import Scrub
from .shards.understudy_hand_over import is_followed_by_spark, is_stood_in

_SUMS = {  # metric: the column of the rows of progress that it sums
    "tidemark_pipeline_chunks_total": "chunks",
    "tidemark_pipeline_expired_files_total": "expired_files",
    "tidemark_pipeline_rebuilt_total": "rebuilt",
}


class PipelineMetrics(Collector):
    """Collector in the service. Every follower reports epochs to it, each from its own thread."""

    def __init__(self, plan: EpochPlan, scrub: Scrub | None = None, *, runs_spark: bool = True) -> None:
        self.waits_for_room = False
        self._plan = plan
        self._runs_spark = runs_spark
        self._scrub = scrub
        self._telling = threading.Lock()
        self._epochs = 0
        self._records = 0
        self._sums = dict.fromkeys(_SUMS, 0)
        self._visible = Buckets("tidemark_append_visible_seconds")
        self._hand_over = Buckets("tidemark_epoch_hand_over_seconds")
        self._stopped_s: dict[int, float] = {}  # shard: time at which its last holder stopped following

    def epoch_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add an epoch's rows of progress."""
        with self._telling:
            self._epochs += 1
            for row in rows:
                if row["shard"] < self._plan.shards:
                    self._records += row["records"]
                for name, column in _SUMS.items():
                    self._sums[name] += row[column]
                self._visible.add(row["visible"], row["visible_s"])
                self._see_hand_over(row)

    def _see_hand_over(self, row: Mapping[str, Any]) -> None:
        before = self._stopped_s.get(row["shard"])
        if before is not None and row["began_s"] >= before:
            self._hand_over.observe(row["began_s"] - before)
        if row["stopped_s"]:
            self._stopped_s[row["shard"]] = row["stopped_s"]

    def collect(self) -> Iterator[Metric]:
        with self._telling:
            told = [
                number("tidemark_pipeline_epochs_total", self._epochs),
                number("tidemark_pipeline_records_total", self._records),
                *(number(name, count) for name, count in self._sums.items()),
                histogram(self._visible),
                histogram(self._hand_over),
            ]
        yield from told
        yield number("tidemark_pipeline_waits_for_room", self.waits_for_room)
        yield numbers("tidemark_pipeline_engine", self._engines())
        if self._scrub is not None:
            yield number("tidemark_pipeline_scrubbed_bytes_total", self._scrub.scrubbed_bytes)
            yield number("tidemark_pipeline_scrub_rounds_total", self._scrub.rounds)
            yield number("tidemark_pipeline_scrub_position_bytes", self._scrub.position)
            yield number("tidemark_pipeline_scrub_damaged_total", self._scrub.damaged_files)
        yield from self._marks()

    def _engines(self) -> list[tuple[tuple[str], float]]:
        builders = {"understudy": is_stood_in}
        if self._runs_spark:
            builders["spark"] = is_followed_by_spark
        return [((engine,), float(self._any_shard(builds))) for engine, builds in builders.items()]

    def _any_shard(self, builds: Callable[[EpochPlan, int], bool]) -> bool:
        try:
            return any(builds(self._plan, shard) for shard in range(self._plan.all_shards))
        except FileNotFoundError:  # before the first start
            return False

    def _marks(self) -> Iterator[Metric]:
        """Yield the marks of all shards; nothing for a store that was never indexed."""
        try:
            marks = Marks.open_read_only(self._plan.paths.marks)
        except (FileNotFoundError, CorruptStoreError):
            return
        try:
            shards = range(marks.shards)
            visible = [((str(shard),), float(marks.visible(shard))) for shard in shards]
            durable = [((str(shard),), float(marks.durable(shard))) for shard in shards]
        finally:
            marks.close()
        yield numbers("tidemark_pipeline_visible_bytes", visible)
        yield numbers("tidemark_pipeline_durable_bytes", durable)
