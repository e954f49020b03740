"""Drains of two tasks for test_local_drain, in a separate process: ``python -m tests.unit.pipeline.drains NAME``.

A drain forks its process, and a process in which other tests have used gRPC or OpenTelemetry cannot be forked safely.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from services.indexer.pipeline import local_drain
from services.indexer.pipeline.config import PipelineSettings
from services.indexer.pipeline.plan import EpochPlan, make_plan
from services.indexer.pipeline.shards.shard_builder import ShardProgress
from tidemark.errors import CorruptStoreError
from tidemark.settings.engine import Engine


def drain(root: Path, task: Callable[[int], ShardProgress]) -> list[dict[str, Any]]:
    """Drain with two tasks, each of which calls *task* with its shard instead of running an epoch."""
    plan = make_plan(PipelineSettings(store_root=root, once=True, pipeline=Engine.PLAIN))
    assert plan.all_shards == 2

    def run(_: EpochPlan, *, shard: int, follower: int) -> ShardProgress:
        return task(shard)

    with patch.object(local_drain, "run_epoch", run):
        return local_drain.drain(plan)


def each_task_is_a_process_and_a_row(root: Path) -> None:
    """Expect the rows in the order of the shards."""
    rows = drain(root, lambda shard: ShardProgress(0, shard, records=os.getpid()))
    assert [row["shard"] for row in rows] == [0, 1]
    assert len({os.getpid(), *(row["records"] for row in rows)}) == 3


def failure_of_a_task_is_raised_after_all_tasks(root: Path) -> None:
    """Expect the failure with its facts; the caller then releases its locks."""

    def task(shard: int) -> ShardProgress:
        if shard == 0:
            raise CorruptStoreError("broken", path="there")
        time.sleep(0.5)
        (root / "ended").touch()
        return ShardProgress(0, shard)

    with pytest.raises(CorruptStoreError) as raised:
        drain(root, task)
    assert raised.value.facts == {"path": "there"}
    assert (root / "ended").exists()


def killed_task_is_an_error(root: Path) -> None:
    """Expect that the drain does not wait for it."""

    def task(shard: int) -> ShardProgress:
        if shard == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return ShardProgress(0, shard)

    with pytest.raises(RuntimeError, match="task 1 was killed"):
        drain(root, task)


DRAINS = (each_task_is_a_process_and_a_row, failure_of_a_task_is_raised_after_all_tasks, killed_task_is_an_error)

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        {function.__name__: function for function in DRAINS}[sys.argv[1]](Path(folder))
