"""The two follower queries of one Spark session, from their start until a stop or a failure."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import structlog

from ..config import PipelineSettings
from ..epoch_reports import EpochListener
from ..plan import EpochPlan
from ..shards.understudy_hand_over import is_at_work_for_spark, is_followed_by_spark
from . import job
from .driver_priority import step_back
from .spark_checkpoint import new_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = structlog.get_logger()


def run_followers(
    session: SparkSession,
    settings: PipelineSettings,
    plan: EpochPlan,
    stopping: threading.Event,
    reports: EpochListener,
) -> None:
    """Run both queries until *stopping* is set. No task runs after the return.

    Raises the exception of a failed query.
    """
    plan = replace(plan, short_until_s=time.time() + settings.warm_up_ms / 1000)
    queries: list[StreamingQuery] = []
    checkpoint = new_checkpoint(plan)
    try:
        for follower in range(job.FOLLOWERS):
            if stopping.is_set():
                break
            queries.append(job.start_query(session, plan, follower, checkpoint / f"follower-{follower}", reports))
            if follower == 0:
                if plan.epoch_ms:  # with 0, tasks end as soon as they have drained
                    _wait_until_followed(plan, queries[0], stopping, settings.start_timeout_s)
                log.info("spark_follows", shards=plan.shards, epoch_ms=plan.epoch_ms)
        driver = getattr(session.sparkContext._gateway, "proc", None)  # None: another program started the JVM
        if plan.epoch_ms and driver is not None:
            step_back(driver.pid)
        while not stopping.is_set() and not _has_ended(queries):
            stopping.wait(0.5)
    finally:
        _stop(plan, queries)


def _has_ended(queries: list[StreamingQuery]) -> bool:
    """Return True if a query has ended. Raises the exception of a failed query."""
    for query in queries:
        if not query.isActive:
            error = query.exception()
            if error is not None:
                raise error
            return True
    return False


def _wait_until_followed(plan: EpochPlan, query: StreamingQuery, stopping: threading.Event, timeout_s: float) -> None:
    """Block until tasks of Spark hold every shard. The second query starts after this, so that its tasks wait for all.

    Started together, each query could take some of the shards.
    """
    deadline = time.monotonic() + timeout_s
    while not stopping.is_set() and not _has_ended([query]):
        if all(is_followed_by_spark(plan, shard) for shard in range(plan.all_shards)):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"not every shard is followed after {timeout_s} s (start_timeout_s)")
        time.sleep(0.02)


def _stop(plan: EpochPlan, queries: list[StreamingQuery]) -> None:
    """Ask the tasks to end, wait for them, then stop the queries.

    Stopping a query during an epoch would kill Spark's thread.
    """
    with contextlib.suppress(OSError):  # on a full disk the flag may fail: the queries are stopped without it
        plan.stop_flag.touch()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(is_at_work_for_spark(plan, shard) for shard in range(plan.all_shards)):
        time.sleep(0.02)
    for query in queries:
        query.stop()
