"""The distribution of shards over executors."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest

from tests.cluster.follow_run import SHARDS, FollowRun
from tests.cluster.holder import pid_of

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(900)]


def test_shards_are_followed_in_executors_of_different_workers(run: FollowRun, tell: Callable[[str], None]) -> None:
    """The epochs report them, and these executors exist, in both workers."""
    for _ in range(4):
        executors = run.wait_for_epoch()["executors"]
        assert len(executors) == SHARDS + 1
        workers = {run.cluster.worker_of(pid_of(executor)).name for executor in executors}
        assert workers == {worker.name for worker in run.cluster.workers}
        assert {_jvm_of(executor) for executor in executors} == {
            executor.pid for worker in run.cluster.workers for executor in worker.executors()
        }
    tell(f"an epoch's shards were built in {', '.join(executors)}")
    run.finish()


def _jvm_of(executor: str) -> int:
    parent = psutil.Process(pid_of(executor)).parent()
    assert parent is not None
    return parent.pid
