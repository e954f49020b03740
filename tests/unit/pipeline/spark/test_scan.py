"""Ranges of a log that a drain scans before it builds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.spark.scan import ranges_to_build, scan_planned
from tests.builders import Placed
from tests.pipeline_runs import plan_of
from tests.unit.pipeline.keyed_log import LOG_FILE, SETTINGS, write_keyed_log
from tidemark.index.scan.log_range import ScannedRanges
from tidemark.store.marks import Marks
from tidemark.store.storage import DiskStorage

COUNT = 250  # four log files


@pytest.fixture
def placed(tmp_path: Path) -> list[Placed]:
    return write_keyed_log(tmp_path, COUNT)


@pytest.fixture
def plan(tmp_path: Path, placed: list[Placed]) -> EpochPlan:
    """Return the plan of a store with new marks."""
    plan = plan_of(tmp_path, **SETTINGS)
    mark(plan, 0, 0)
    return plan


def mark(plan: EpochPlan, *positions: int) -> None:
    """Set the visible mark of each shard."""
    marks = Marks.open_to_write(plan.paths.marks, DiskStorage(), shards=plan.all_shards, term=0)
    for shard, position in enumerate(positions):
        marks.publish(shard, position)
    marks.close()


def edges(plan: EpochPlan, *, size_bytes: int = LOG_FILE) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in ranges_to_build(plan, size_bytes=size_bytes)]


def test_ranges_are_whole_files_up_to_the_end_of_the_log(plan: EpochPlan) -> None:
    """A record begins at each file's start, so a task needs no other range."""
    assert plan.limit is not None
    whole = [(start, start + LOG_FILE) for start in range(0, 3 * LOG_FILE, LOG_FILE)]
    assert edges(plan) == [*whole, (3 * LOG_FILE, plan.limit)]
    assert edges(plan, size_bytes=2 * LOG_FILE + 1) == [(0, 2 * LOG_FILE), (2 * LOG_FILE, plan.limit)]


def test_ranges_begin_at_the_least_mark(plan: EpochPlan, placed: list[Placed]) -> None:
    """A shard that lags needs the part of the log that the others have built."""
    least = placed[70].physical_offset
    mark(plan, placed[150].physical_offset, least)
    assert edges(plan)[0] == (least, 2 * LOG_FILE)


def test_ranges_begin_at_the_logs_start_if_retention_has_passed_the_marks(plan: EpochPlan) -> None:
    (plan.root / "commitlog" / f"{0:020d}").unlink()
    assert edges(plan)[0] == (LOG_FILE, 2 * LOG_FILE)


def test_there_are_no_ranges_if_everything_is_built_or_nothing_is_committed(plan: EpochPlan) -> None:
    assert plan.limit is not None
    mark(plan, plan.limit, plan.limit)
    assert edges(plan) == []
    mark(plan, 0, 0)
    assert edges(replace(plan, limit=None)) == []


def test_the_ranges_hold_every_record_once_and_a_second_scan_is_reused(plan: EpochPlan) -> None:
    ranges = ranges_to_build(plan, size_bytes=LOG_FILE)
    plan.scan_folder.mkdir()
    planned = replace(plan, scanned=ScannedRanges(plan.scan_folder, ranges))
    rows = [scan_planned(planned, number) for number in range(len(ranges))]
    assert [(row.start_offset, row.end_offset) for row in rows] == [tuple(one) for one in ranges]
    assert (sum(row.records for row in rows), sum(row.keys for row in rows)) == (COUNT, COUNT)
    assert not any(row.reused for row in rows)
    assert all(scan_planned(planned, number).reused for number in range(len(ranges)))
