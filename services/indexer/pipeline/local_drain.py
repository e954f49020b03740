"""Runs a one-off drain in local processes, without Spark."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from tidemark.index.scan.scan_range import RangeProgress
from tidemark.index.warm_up import warm_up

from .epoch import run_epoch
from .plan import EpochPlan
from .spark.scan import scan_planned

Task = Callable[[], Any]


def slots() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def start() -> None:
    """Load every compiled loop once; the forked processes inherit them."""
    warm_up()


def scan(plan: EpochPlan) -> list[RangeProgress]:
    """Scan the plan's ranges, divided among the processes, as `job.Drain.scan` does."""
    assert plan.scanned is not None, "the caller has planned it"
    count = len(plan.scanned.ranges)
    processes = min(slots(), count)
    shares = [range(first, count, processes) for first in range(processes)]
    return [row for rows in _run([partial(_scan_share, plan, share) for share in shares]) for row in rows]


def _scan_share(plan: EpochPlan, numbers: Sequence[int]) -> list[RangeProgress]:
    return [scan_planned(plan, number) for number in numbers]


def drain(plan: EpochPlan) -> list[dict[str, Any]]:
    """Build up to the committed offset and return one row of progress per task, as `job.Drain.drain` does.

    Raises the exception of a failed task.
    """
    tasks = [partial(run_epoch, plan, shard=shard, follower=0) for shard in range(plan.all_shards)]
    return [asdict(progress) for progress in _run(tasks)]


def _run(tasks: Sequence[Task]) -> list[Any]:
    """Call each task in a process of its own and return the results.

    A process runs one task and then ends. It also ends when this process is gone, so none keeps inherited descriptors.
    """
    context = multiprocessing.get_context("fork")
    outcomes: list[Connection] = []
    for number, task in enumerate(tasks):
        outcome, told = context.Pipe(duplex=False)
        context.Process(target=_call, args=(task, told), name=f"task-{number}").start()
        told.close()
        outcomes.append(outcome)
    results: list[Any] = []
    failures: list[Exception] = []
    for number, outcome in enumerate(outcomes):  # wait for all, so that no task still runs after the raise
        try:
            results.append(_result(outcome, number))
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
    return results


def _call(task: Task, told: Connection) -> None:
    try:
        told.send(task())
    except Exception as error:
        told.send(error)


def _result(outcome: Connection, number: int) -> Any:
    try:
        result = outcome.recv()
    except EOFError:
        raise RuntimeError(f"the process of task {number} was killed") from None
    if isinstance(result, Exception):
        raise result
    return result
