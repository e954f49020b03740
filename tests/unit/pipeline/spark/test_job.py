"""The streaming queries' functions, without a Spark session: a task's body, and the driver's end of an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row

from services.indexer.pipeline.plan import EpochPlan
from services.indexer.pipeline.shards.shard_builder import ShardProgress
from services.indexer.pipeline.spark import job
from tests.builders import Placed
from tests.pipeline_runs import plan_of
from tests.unit.pipeline.keyed_log import SETTINGS, indexed_offsets, write_keyed_log

COUNT = 30


@pytest.fixture
def placed(tmp_path: Path) -> list[Placed]:
    return write_keyed_log(tmp_path, COUNT)


@pytest.fixture
def plan(tmp_path: Path, placed: list[Placed]) -> EpochPlan:
    plan = plan_of(tmp_path, **SETTINGS)
    plan.paths.indexer.mkdir(parents=True)
    return plan


class Frame:
    """The rows of an epoch; collecting them runs its tasks."""

    def __init__(self, *rows: ShardProgress, failure: Exception | None = None) -> None:
        self._rows = rows
        self._failure = failure
        self.was_run = False

    def collect(self) -> list[Row]:
        self.was_run = True
        if self._failure is not None:
            raise self._failure
        return [Row(**asdict(row)) for row in self._rows]


class Receiver:
    """Receives the rows of ended epochs."""

    def __init__(self) -> None:
        self.epochs: list[Sequence[Mapping[str, Any]]] = []

    def epoch_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.epochs.append(rows)


def report(plan: EpochPlan, frame: Frame, receiver: Receiver) -> None:
    """Run the function for foreachBatch."""
    job.report_progress(plan, receiver)(cast(DataFrame, frame), 7)


# -- tasks ---------------------------------------------------------------------------------------------------------


def planning_rows(*values: int) -> Iterator[pa.RecordBatch]:
    """Yield one batch per row, as Spark does for partitions of one row."""
    for value in values:
        yield pa.RecordBatch.from_pydict({"value": [value]})


def test_each_planning_row_builds_the_shard_of_its_number(plan: EpochPlan, placed: list[Placed]) -> None:
    """Numbers increase from epoch to epoch; with two tasks, 10 is the queues' and 11 the key index's."""
    rows = [batch.to_pylist()[0] for batch in job.follow(plan, 0)(planning_rows(10, 11))]
    assert [(row["shard"], row["records"], row["end_offset"]) for row in rows] == [
        (0, COUNT, plan.limit),
        (1, COUNT, plan.limit),
    ]
    assert indexed_offsets(plan.root) == [one.physical_offset for one in placed]


def test_the_rows_of_a_task_have_the_columns_that_the_driver_declared(plan: EpochPlan) -> None:
    """Spark matches the columns of mapInArrow by position, and refuses other types."""
    (batch,) = job.follow(plan, 1)(planning_rows(0))
    declared = [tuple(column.split(" ")) for column in job.PROGRESS_SCHEMA.split(", ")]
    types = {"long": pa.int64(), "double": pa.float64(), "string": pa.string(), "array<long>": pa.list_(pa.int64())}
    assert [(field.name, field.type) for field in batch.schema] == [(name, types[kind]) for name, kind in declared]


def test_the_package_is_importable_from_the_python_path_of_the_workers() -> None:
    module = Path(*job.__name__.split(".")).with_suffix(".py")
    assert (Path(job.python_path()) / module).samefile(job.__file__)


# -- the driver ----------------------------------------------------------------------------------------------------


def test_the_rows_of_an_epoch_are_reported(plan: EpochPlan) -> None:
    receiver = Receiver()
    row = ShardProgress(0, 0, end_offset=900)
    report(plan, Frame(row), receiver)
    assert receiver.epochs == [[asdict(row)]]


def test_no_epoch_begins_while_the_pipeline_stops(plan: EpochPlan) -> None:
    plan.stop_flag.touch()
    frame, receiver = Frame(ShardProgress(0, 0)), Receiver()
    report(plan, frame, receiver)
    assert not frame.was_run and receiver.epochs == []


def test_a_failed_epoch_fails_its_query_unless_the_pipeline_stops(plan: EpochPlan) -> None:
    """Stopping interrupts tasks, which is no failure."""

    class Interrupted(Frame):
        def collect(self) -> list[Row]:
            plan.stop_flag.touch()
            raise RuntimeError("interrupted")

    receiver = Receiver()
    with pytest.raises(RuntimeError, match="task failed"):
        report(plan, Frame(failure=RuntimeError("task failed")), receiver)
    report(plan, Interrupted(), receiver)
    assert receiver.epochs == []
