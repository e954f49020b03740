"""A drain without Spark: its tasks as processes of this machine, for who waits for one pass over a log."""

from __future__ import annotations

import multiprocessing
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from tidemark.index.warm_up import warm_up

from .epoch import run_epoch
from .plan import EpochPlan
from .shard_builder import Progress


def drain(plan: EpochPlan) -> list[dict[str, Any]]:
    """Build what is committed; a row of progress a task, as `job.drain`. raises what a task failed with.

    A process has one task and ends with it, or when this one is gone: none stays and holds what it was forked with.
    """
    warm_up()  # once, for all of them
    context = multiprocessing.get_context("fork")
    outcomes: list[Connection] = []
    for shard in range(plan.all_shards):
        outcome, told = context.Pipe(duplex=False)
        context.Process(target=_run, args=(plan, shard, told), name=f"shard-{shard}").start()
        told.close()
        outcomes.append(outcome)
    rows: list[dict[str, Any]] = []
    failures: list[Exception] = []
    for shard, outcome in enumerate(outcomes):  # of all of them: no task works on behind what is raised
        try:
            rows.append(asdict(_result(outcome, shard)))
        except Exception as failure:
            failures.append(failure)
    if failures:
        raise failures[0]
    return rows


def _run(plan: EpochPlan, shard: int, told: Connection) -> None:
    try:
        told.send(run_epoch(plan, shard=shard, follower=0))
    except Exception as error:
        told.send(error)


def _result(outcome: Connection, shard: int) -> Progress:
    try:
        result: Progress | Exception = outcome.recv()
    except EOFError:
        raise RuntimeError(f"the process of shard {shard} was killed") from None
    if isinstance(result, Exception):
        raise result
    return result
