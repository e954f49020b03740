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
from tests.cluster.standalone import Daemon, parts_of, session_of, signal_all
from tests.processes import command_line
from tidemark.local.local_stack import PIPELINE

pytestmark = [pytest.mark.spark, pytest.mark.exhaustive, pytest.mark.timeout(900)]
Tell = Callable[[str], None]
_LONGEST_PAUSE_S = 1.0
_WITHOUT_CLUSTER_S = 5.0
_POLL_S = 0.1


def test_killed_workers_are_replaced_with_their_executors(run: FollowRun, tell: Tell) -> None:
    """One worker is killed, and when it is back, the other one, which has all executors by then."""
    first, second = run.cluster.workers
    first.kill()
    tell(f"a worker killed: visible again after {run.recover():.1f} s")
    first.start()
    run.cluster.wait_until_registered()
    second.kill()
    tell(f"the worker with all executors killed: visible again after {run.recover():.1f} s")
    _wait_until_all_shards_are_with(run, first)
    run.finish()


def test_a_killed_executor_is_replaced(run: FollowRun, tell: Tell) -> None:
    """Its worker starts another one."""
    (executor,) = run.cluster.worker_of(pid_of(run.wait_for_epoch()["executors"][0])).executors()
    signal_all(parts_of(executor), signal.SIGKILL)
    tell(f"an executor killed: visible again after {run.recover():.1f} s")
    run.finish()


def test_a_killed_service_is_replaced(run: FollowRun, tell: Tell) -> None:
    """Its main process is killed, then all its processes: the tasks end, and the next driver continues."""
    for only_main in (True, False):
        before = _python_of_executors(run)
        began = time.monotonic()
        service = run.stack.services[PIPELINE]
        if only_main:
            os.kill(service.pid, signal.SIGKILL)
            service.wait(RECOVERY_S)
        service.kill()  # ends all its processes; the log belongs to the next one
        run.start_pipeline()
        run.recover()
        run.wait_for_epoch()
        assert not any(process.is_running() for process in before)
        tell(f"service killed and started: an epoch of the next driver after {time.monotonic() - began:.1f} s")
    run.finish()


@pytest.mark.parametrize("victims", ["start", "driver", "jvm", "executors", "cluster"])
def test_nothing_waits_while_the_understudy_stands_in_for_spark(run: FollowRun, tell: Tell, victims: str) -> None:
    """The start of Spark, and kill -9 of all processes of a kind; Spark continues by itself."""
    if victims != "start":
        before = set(run.wait_for_epoch()["executors"])
        run.longest_pause_s()
        _kill(run, victims)
        if victims == "cluster":
            time.sleep(_WITHOUT_CLUSTER_S)
            run.cluster.repair_processes()
        while before & set(run.wait_for_epoch()["executors"]):  # epochs that ended before the kill
            pass
    longest_s = run.longest_pause_s()
    tell(f"{victims}: committed bytes waited at most {longest_s:.2f} s")
    assert longest_s < _LONGEST_PAUSE_S
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


def _wait_until_all_shards_are_with(run: FollowRun, worker: Daemon) -> None:
    """Until then the understudy has some of them, a process of the pipeline service."""
    deadline = time.monotonic() + RECOVERY_S
    while sessions := {_session_of_holder(run, shard) for shard in range(SHARDS + 1)} - {worker.pid}:
        assert time.monotonic() < deadline, sessions
        time.sleep(_POLL_S)


def _session_of_holder(run: FollowRun, shard: int) -> int | None:
    holder = holder_of(run.stack.data, shard)
    return None if holder is None else session_of(holder)


def _kill(run: FollowRun, victims: str) -> None:
    if victims == "cluster":
        for daemon in (run.cluster.master, *run.cluster.workers):
            daemon.kill()
        return
    processes = _executors_of(run) if victims == "executors" else _parts_of_driver(run, victims)
    assert processes
    signal_all(processes, signal.SIGKILL)


def _executors_of(run: FollowRun) -> list[psutil.Process]:
    executors = [executor for worker in run.cluster.workers for executor in worker.executors()]
    return [part for executor in executors for part in parts_of(executor)]


def _parts_of_driver(run: FollowRun, victims: str) -> list[psutil.Process]:
    sign = {"driver": "spawn_main", "jvm": "SparkSubmit"}[victims]
    processes = psutil.Process(run.stack.services[PIPELINE].pid).children(recursive=True)
    return [process for process in processes if sign in command_line(process)]


def _python_of_executors(run: FollowRun) -> list[psutil.Process]:
    """Return the Python processes of executors, which have the store's files open."""
    executors = [executor for worker in run.cluster.workers for executor in worker.executors()]
    found = [part for executor in executors for part in parts_of(executor)[1:]]
    assert found
    return found
