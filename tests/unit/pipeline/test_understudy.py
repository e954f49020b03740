"""The understudy beside tasks of Spark's followers, which are threads here."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from services.indexer.pipeline.epoch import run_share
from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.prepare import prepare
from services.indexer.pipeline.shards.understudy_hand_over import UNDERSTUDY, is_followed_by_spark, is_stood_in
from services.indexer.pipeline.understudy import Understudy
from tests.pipeline_runs import plan_of
from tests.unit.pipeline.keyed_log import SETTINGS, indexed_offsets, write_keyed_log
from tests.waiting import until
from tidemark.errors import FlushFailedError
from tidemark.store.lock import FolderLock
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

STORAGE = DiskStorage()


class Reports:
    """Keeps the rows of ended epochs."""

    def __init__(self) -> None:
        self.rows: list[Mapping[str, Any]] = []

    def epoch_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows.extend(rows)


@pytest.fixture(params=[1, 2], ids=["one-task", "a-task-a-shard"])
def plan(tmp_path: Path, request: pytest.FixtureRequest) -> EpochPlan:
    write_keyed_log(tmp_path, 30)
    plan = replace(plan_of(tmp_path, shards=request.param, **SETTINGS), epoch_ms=3_600_000)
    plan.paths.indexer.mkdir(parents=True)
    prepare(plan, STORAGE)
    return plan


@contextmanager
def understudy_of(plan: EpochPlan, *, yields: bool = True) -> Iterator[tuple[Understudy, Reports]]:
    reports = Reports()
    understudy = Understudy(plan, STORAGE, reports, yields=yields)
    understudy.start()
    try:
        yield understudy, reports
    finally:
        understudy.stop()


class Spark:
    """A task for each share of the shards, until they are stopped."""

    def __init__(self, plan: EpochPlan) -> None:
        self._plan = plan
        self._tasks = [
            threading.Thread(target=run_share, args=(plan, share), kwargs={"follower": 0}) for share in plan.shares
        ]
        for task in self._tasks:
            task.start()

    def follows(self) -> bool:
        return all(is_followed_by_spark(self._plan, shard) for shard in range(self._plan.all_shards))

    def end(self) -> None:
        self._plan.stop_flag.touch()
        for task in self._tasks:
            task.join()
        self._plan.stop_flag.unlink()


def stood_in(plan: EpochPlan) -> list[bool]:
    return [is_stood_in(plan, shard) for shard in range(plan.all_shards)]


def visible(plan: EpochPlan) -> int:
    marks = Marks.open_read_only(plan.paths.marks)
    try:
        return min(marks.visible(shard) for shard in range(plan.all_shards))
    finally:
        marks.close()


def test_it_builds_from_the_start(plan: EpochPlan) -> None:
    """All that it built is durable when it has stopped."""
    with understudy_of(plan) as (_, reports):
        until(lambda: visible(plan) == plan.limit)
        assert all(stood_in(plan))
    assert len(indexed_offsets(plan.root)) == 30
    assert {(row["shard"], row["follower"]) for row in reports.rows} == {
        (shard, UNDERSTUDY) for shard in range(plan.all_shards)
    }
    marks = Marks.open_read_only(plan.paths.marks)
    assert marks.durable_floor() == plan.limit
    marks.close()


def test_it_gives_the_shards_to_spark_and_takes_them_back(plan: EpochPlan) -> None:
    """Each is one event. Every message is built once, whichever task builds it."""
    with capture_logs() as events, understudy_of(plan):
        until(lambda: all(stood_in(plan)))
        for _ in range(2):
            spark = Spark(plan)
            until(spark.follows)
            until(lambda: not any(stood_in(plan)))
            spark.end()
            until(lambda: all(stood_in(plan)))
    assert len(indexed_offsets(plan.root)) == 30
    changes = [event["event"] for event in events if event.get("shards") == plan.shares[0]]
    assert changes == ["understudy_took_over", "understudy_gave_back"] * 2 + ["understudy_took_over"]


def test_it_leaves_a_free_shard_to_a_task_that_waits(plan: EpochPlan) -> None:
    waiting = FolderLock(plan.standby_path(0))
    waiting.acquire()
    with understudy_of(plan) as (understudy, _):
        understudy._stopping.wait(0.5)  # several looks
        assert not is_stood_in(plan, 0)
        waiting.release()
        until(lambda: is_stood_in(plan, 0))


def test_without_spark_it_reports_its_epochs(plan: EpochPlan) -> None:
    plan = replace(plan, epoch_ms=50)
    with understudy_of(plan, yields=False) as (_, reports):
        until(lambda: len(reports.rows) >= 3 * plan.all_shards)
    assert sum(row["records"] for row in reports.rows if row["shard"] < plan.shards) == 30


def test_a_failed_sync_of_a_task_of_spark_is_its_failure_too(plan: EpochPlan) -> None:
    """No task builds until a new start has reset to the durable marks. The error names the reason."""
    plan.note_failed_sync("the disk said no")
    with understudy_of(plan) as (understudy, _):
        until(lambda: understudy._failure is not None)
        with pytest.raises(FlushFailedError, match="the disk said no"):
            understudy.raise_failure()
        until(lambda: not any(stood_in(plan)))
