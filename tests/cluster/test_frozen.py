"""Tasks that stop for long without ending, and continue later."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import psutil
import pytest

from tests.cluster.follow_run import FollowRun
from tests.cluster.holder import holder_of, pid_of
from tests.cluster.standalone import parts_of, signal_all
from tidemark.errors import StoreLockedError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.exhaustive,
    pytest.mark.timeout(900),
]
Tell = Callable[[str], None]
_AWAKE_S = 3.0


def test_a_frozen_cluster_task_is_replaced_and_refused_when_it_resumes(run: FollowRun, tell: Tell) -> None:
    """The process that builds shard 0 hangs, its executor does not: Spark notices nothing."""
    run.wait_for_epoch()
    task = holder_of(run.stack.data, 0)
    assert task is not None
    refused = run.cluster.times_told(StoreLockedError.__name__)
    _freeze_and_wake(run, [task], tell, "a task")
    assert run.cluster.times_told(StoreLockedError.__name__) > refused
    run.finish(may_go_back=True)  # the one write during which it was frozen


def test_a_frozen_executor_is_replaced_and_refused_when_it_resumes(run: FollowRun, tell: Tell) -> None:
    """As with a machine that hangs, nothing of it answers, until all of it continues at once."""
    (executor,) = run.cluster.worker_of(pid_of(run.wait_for_epoch()["executors"][0])).executors()
    _freeze_and_wake(run, parts_of(executor), tell, "an executor")
    run.finish(may_go_back=True)  # the one write during which it was frozen


def _freeze_and_wake(run: FollowRun, processes: list[psutil.Process], tell: Tell, what: str) -> None:
    signal_all(processes, signal.SIGSTOP)
    try:
        run.wait_for_append()  # another executor has built everything that becomes visible from here on
        tell(f"{what} frozen: visible again after {run.recover():.1f} s")
        frozen = [process for process in processes if _is_frozen(process)]
        assert frozen, "the frozen process has ended, so its wake-up cannot be checked"
    finally:
        signal_all(processes, signal.SIGCONT)
    time.sleep(_AWAKE_S)
    run.recover()


def _is_frozen(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False
