"""Reports of ended epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.epoch_reports import EpochReports
from services.indexer.pipeline.plan import make_plan
from services.indexer.pipeline.shards.shard_builder import ShardProgress


class Receiver:
    """Receives the rows of ended epochs."""

    def __init__(self) -> None:
        self.epochs: list[Sequence[Mapping[str, Any]]] = []

    def epoch_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.epochs.append(rows)


def test_an_epoch_is_one_event_over_all_its_shards(tmp_path: Path) -> None:
    """Records are those of the queue shards, keys those of the key index, which is the last shard."""
    queues = ShardProgress(1, 0, end_offset=900, records=7, chunks=2, damages=1, term=4, held_s=1.5, executor="a/1")
    keys = ShardProgress(1, 1, end_offset=800, records=9, chunks=3, expired_files=2, term=5, held_s=2.5, executor="b/2")
    reports = EpochReports(make_plan(PipelineSettings(store_root=tmp_path)), [])
    with capture_logs() as events:
        reports.epoch_finished([asdict(keys), asdict(queues)])
    (event,) = events
    assert (event["event"], event["engine"], event["follower"]) == ("epoch_finished", "spark", 1)
    assert (event["watermark"], event["term"]) == (800, 5)
    assert (event["records"], event["keys"], event["chunks"]) == (7, 9, 5)
    assert (event["damages"], event["expired_files"], event["held_s"]) == (1, 2, 2.5)
    assert event["executors"] == ["a/1", "b/2"]


def test_every_receiver_gets_the_rows_of_an_epoch(tmp_path: Path) -> None:
    metrics, spans = Receiver(), Receiver()
    rows = [asdict(ShardProgress(0, 0, end_offset=900))]
    EpochReports(make_plan(PipelineSettings(store_root=tmp_path)), [metrics, spans]).epoch_finished(rows)
    assert metrics.epochs == spans.epochs == [rows]
