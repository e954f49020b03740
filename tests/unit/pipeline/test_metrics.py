"""The driver's metrics from the rows of epochs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.metrics import PipelineMetrics
from services.indexer.pipeline.plan import make_plan
from services.indexer.pipeline.shards.shard_builder import ShardProgress
from tidemark.metrics.buckets import Buckets
from tidemark.store.lock import FolderLock


def lines(metrics: PipelineMetrics) -> list[str]:
    registry = CollectorRegistry()
    registry.register(metrics)
    return generate_latest(registry).decode().splitlines()


def row(shard: int, **fields: Any) -> dict[str, Any]:
    return asdict(ShardProgress(0, shard, **fields))


def test_epochs_add_up(tmp_path: Path) -> None:
    """They are the records of the queue shard alone, chunks of all, and the tasks' histograms."""
    metrics = PipelineMetrics(make_plan(PipelineSettings(store_root=tmp_path)))
    seen = Buckets("tidemark_append_visible_seconds")
    seen.observe(0.004)
    told = {"visible": seen.counts, "visible_s": seen.total}
    for _ in range(2):
        metrics.epoch_finished([row(0, records=5, chunks=2, **told), row(1, records=7, chunks=2)])
    assert {
        "tidemark_pipeline_epochs_total 2.0",
        "tidemark_pipeline_records_total 10.0",
        "tidemark_pipeline_chunks_total 8.0",
        'tidemark_append_visible_seconds_bucket{le="0.002"} 0.0',
        'tidemark_append_visible_seconds_bucket{le="0.005"} 2.0',
        "tidemark_append_visible_seconds_count 2.0",
        "tidemark_pipeline_waits_for_room 0.0",
    } <= set(lines(metrics))


@pytest.mark.parametrize(
    ("runs_spark", "understudy", "expected"),
    [
        (True, False, {"understudy": 0, "spark": 1}),
        (True, True, {"understudy": 1, "spark": 0}),
        (False, True, {"understudy": 1}),
    ],
)
def test_the_engine_is_the_holder_of_shards(
    tmp_path: Path, runs_spark: bool, understudy: bool, expected: dict[str, int]
) -> None:
    plan = make_plan(PipelineSettings(store_root=tmp_path))
    metrics = PipelineMetrics(plan, runs_spark=runs_spark)
    assert 'tidemark_pipeline_engine{engine="understudy"} 0.0' in lines(metrics)  # before the first start
    plan.paths.indexer.mkdir(parents=True)
    paths = [plan.lock_path(1), plan.understudy_path(1)] if understudy else [plan.lock_path(1)]
    held = [FolderLock(path) for path in paths]
    for lock in held:
        lock.acquire()
    told = {line for line in lines(metrics) if line.startswith("tidemark_pipeline_engine{")}
    assert told == {f'tidemark_pipeline_engine{{engine="{name}"}} {value}.0' for name, value in expected.items()}
    for lock in held:
        lock.release()


def test_hand_over_time_is_measured_from_stop_to_next_acquire(tmp_path: Path) -> None:
    """The time is measured per shard; a start without an earlier stop, or before that stop, is not counted."""
    metrics = PipelineMetrics(make_plan(PipelineSettings(store_root=tmp_path)))
    metrics.epoch_finished([row(0, began_s=10.0, stopped_s=20.0), row(1, began_s=10.0, stopped_s=20.0)])
    assert "tidemark_epoch_hand_over_seconds_count 0.0" in lines(metrics)
    metrics.epoch_finished([row(0, began_s=20.002, stopped_s=30.0), row(1, began_s=20.002, stopped_s=30.0)])
    metrics.epoch_finished([row(0, began_s=15.0)])
    assert {
        "tidemark_epoch_hand_over_seconds_count 2.0",
        'tidemark_epoch_hand_over_seconds_bucket{le="0.001"} 0.0',
        'tidemark_epoch_hand_over_seconds_bucket{le="0.0025"} 2.0',
    } <= set(lines(metrics))
