"""Parts of the cluster are killed under load: nothing is lost, the lag ends, and the bytes equal a rebuild's."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import psutil
import pytest

from tests.cluster.follow_run import RECOVERY_S, SHARDS, FollowRun
from tests.cluster.holder import holder_of, pid_of
from tests.cluster.standalone import parts_of, signal_all
from tidemark.local.local_stack import PIPELINE

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(900)]
Tell = Callable[[str], None]


def test_killed_workers_are_replaced_with_their_executors(run: FollowRun, tell: Tell) -> None:
    """One worker is killed, and when it is back, the other one, which has all executors by then."""
    first, second = run.cluster.workers
    first.kill()
    tell(f"a worker killed: visible again after {run.recover():.1f} s")
    first.start()
    run.cluster.wait_until_registered()
    second.kill()
    tell(f"the worker with all executors killed: visible again after {run.recover():.1f} s")
    holders = [holder_of(run.stack.data, shard) for shard in range(SHARDS + 1)]
    assert [holder and run.cluster.worker_of(holder.pid) for holder in holders] == [first] * (SHARDS + 1)
    run.finish()


def test_a_killed_executor_is_replaced(run: FollowRun, tell: Tell) -> None:
    """Its worker starts another one."""
    (executor,) = run.cluster.worker_of(pid_of(run.wait_for_epoch()["executors"][0])).executors()
    signal_all(parts_of(executor), signal.SIGKILL)
    tell(f"an executor killed: visible again after {run.recover():.1f} s")
    run.finish()


def test_a_killed_driver_is_replaced(run: FollowRun, tell: Tell) -> None:
    """Its Python process is killed, then its JVM, then both: the tasks end, and the next driver continues."""
    for victims in ("python", "jvm", "both"):
        before = _python_of_executors(run)
        began = time.monotonic()
        _kill_driver(run, victims)
        run.start_pipeline()
        run.wait_for_epoch()
        assert not any(process.is_running() for process in before)
        run.recover()
        tell(f"driver killed ({victims}) and started: an epoch of the next one after {time.monotonic() - began:.1f} s")
    run.finish()


def test_the_pipeline_continues_over_a_restart_of_the_master(run: FollowRun, tell: Tell) -> None:
    """The followers do not need it; the new master knows workers and application, and replaces an executor."""
    run.cluster.master.kill()
    run.wait_for_epoch()
    tell(f"without a master: visible after {run.recover():.1f} s")
    run.cluster.master.start()
    run.cluster.wait_until_registered()
    run.cluster.wait_until_application_runs()
    (executor,) = run.cluster.workers[0].executors()
    signal_all(parts_of(executor), signal.SIGKILL)
    tell(f"an executor killed under the next master: visible again after {run.recover():.1f} s")
    run.finish()


def _kill_driver(run: FollowRun, victims: str) -> None:
    service = run.stack.services[PIPELINE]
    if victims == "both":
        service.kill()
        return
    (jvm,) = psutil.Process(service.pid).children()
    os.kill(service.pid if victims == "python" else jvm.pid, signal.SIGKILL)
    assert service.wait(RECOVERY_S) == (-signal.SIGKILL if victims == "python" else 1)
    assert psutil.wait_procs([jvm], timeout=RECOVERY_S) == ([jvm], [])
    service.kill()  # ends all its processes; the log belongs to the next one


def _python_of_executors(run: FollowRun) -> list[psutil.Process]:
    """Return the Python processes of executors, which have the store's files open."""
    executors = [executor for worker in run.cluster.workers for executor in worker.executors()]
    found = [part for executor in executors for part in parts_of(executor)[1:]]
    assert found
    return found
