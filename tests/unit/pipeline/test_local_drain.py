"""Tasks as processes: their outcomes, and what is left when one of them fails."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.indexer.pipeline import local_drain
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.shard_builder import Progress
from tidemark.errors import CorruptStoreError

Task = Callable[[int], Progress]


@pytest.fixture
def drain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Task], list[dict[str, Any]]]:
    """A drain of two tasks, each of which does what it is given instead of an epoch."""
    plan = make_plan(PipelineSettings(store_root=tmp_path, once=True, spark=False))
    assert plan.all_shards == 2

    def drain_with(task: Task) -> list[dict[str, Any]]:
        def run(_: EpochPlan, *, shard: int, follower: int) -> Progress:
            return task(shard)

        monkeypatch.setattr(local_drain, "run_epoch", run)
        return local_drain.drain(plan)

    return drain_with


def test_each_task_is_a_process_and_a_row(drain: Callable[[Task], list[dict[str, Any]]]) -> None:
    """In the order of the shards."""
    rows = drain(lambda shard: Progress(0, shard, records=os.getpid()))
    assert [row["shard"] for row in rows] == [0, 1]
    assert len({os.getpid(), *(row["records"] for row in rows)}) == 3


def test_a_tasks_failure_is_raised_when_no_task_runs_any_more(
    drain: Callable[[Task], list[dict[str, Any]]], tmp_path: Path
) -> None:
    """With its facts; the caller lets go of its locks then."""

    def task(shard: int) -> Progress:
        if shard == 0:
            raise CorruptStoreError("broken", path="there")
        time.sleep(0.5)
        (tmp_path / "ended").touch()
        return Progress(0, shard)

    with pytest.raises(CorruptStoreError) as raised:
        drain(task)
    assert raised.value.facts == {"path": "there"}
    assert (tmp_path / "ended").exists()


def test_a_killed_task_is_told(drain: Callable[[Task], list[dict[str, Any]]]) -> None:
    """And not waited for."""

    def task(shard: int) -> Progress:
        if shard == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return Progress(0, shard)

    with pytest.raises(RuntimeError, match="task 1 was killed"):
        drain(task)
