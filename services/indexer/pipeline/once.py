"""`pipeline --once`: index the committed part of the log and exit."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from tidemark.index.end_of_log import find_end_of_log
from tidemark.index.scan.log_range import RANGE_SIZE_BYTES, ScannedRanges
from tidemark.index.scan.scan_range import RangeProgress
from tidemark.store.storage import DiskStorage

from . import local_drain
from .config import PipelineSettings
from .plan import EpochPlan, make_plan
from .prepare import (
    drop_above,
    give_trust_back,
    own_log_without_writer,
    prepare,
    withdraw_trust_without_writer,
)
from .shards.scrub import Scrub
from .shards.shard_builder import executors_of
from .spark.jvm_watchdog import JvmWatchdog, find_jvm
from .spark.scan import ranges_to_build
from .spark.session import start_session

log = structlog.get_logger()


class DrainTasks(Protocol):
    """Executor of a drain's tasks: Spark, or processes of this machine."""

    def start(self) -> None:
        """Start the processes in which tasks run, with all compiled loops loaded."""

    def slots(self) -> int:
        """Return how many tasks run concurrently."""

    def scan(self, plan: EpochPlan) -> list[RangeProgress]:
        """Scan the plan's ranges."""

    def drain(self, plan: EpochPlan) -> list[dict[str, Any]]:
        """Build up to the committed offset and return one row of progress per shard."""


@dataclass
class _Drained:
    """Result of a drain: a row per scanned range and per built shard, and the duration of each step."""

    scanned: list[RangeProgress]
    built: list[dict[str, Any]]
    start_s: float
    scan_s: float
    build_s: float


def run_once(settings: PipelineSettings, storage: DiskStorage) -> None:
    """Index the committed part of the log. Without a writer, its end is found as the writer's recovery finds it."""
    with own_log_without_writer(make_plan(settings)) as alone:
        limit = _end_of_log(make_plan(settings)) if alone else None
        plan = make_plan(settings, limit=limit)
        was_trusted = alone and withdraw_trust_without_writer(plan, storage)
        prepare(plan, storage)
        if limit is not None:
            drop_above(plan, limit, storage)
        Scrub(plan, settings.scrub_bytes_per_s, storage).scrub_at_a_start()
        log.info("drain_started", limit=limit, pipeline=settings.pipeline.value)
        drained = _drain_on_spark(settings, plan) if settings.runs_spark else _drain(settings, plan, local_drain)
        if was_trusted:
            give_trust_back(plan, storage)
    log.info("drain_finished", **_facts(plan, drained))


def _end_of_log(plan: EpochPlan) -> int:
    files = plan.open_log()
    end = find_end_of_log(plan.paths, files)
    files.close()
    return end


def _drain_on_spark(settings: PipelineSettings, plan: EpochPlan) -> _Drained:
    from .spark import job

    began = time.monotonic()
    watchdog = JvmWatchdog(find_jvm, threading.Event())
    watchdog.start()
    session = start_session(settings, plan)
    session_s = time.monotonic() - began
    try:
        drained = _drain(settings, plan, job.Drain(session, is_local=settings.is_local))
        return replace(drained, start_s=session_s + drained.start_s)
    finally:
        session.stop()
        watchdog.close()


def _drain(settings: PipelineSettings, plan: EpochPlan, tasks: DrainTasks) -> _Drained:
    """Scan the log in parallel if it has several ranges, then build from the scanned parts."""
    starting = time.monotonic()
    tasks.start()
    began = time.monotonic()
    scanned: list[RangeProgress] = []
    range_size = settings.scan_range_size_bytes or (RANGE_SIZE_BYTES if tasks.slots() > plan.all_shards else None)
    ranges = ranges_to_build(plan, size_bytes=range_size) if range_size else ()
    if len(ranges) > 1:
        plan = replace(plan, scanned=ScannedRanges(plan.scan_folder, ranges))
        plan.scan_folder.mkdir(exist_ok=True)
        scanned = tasks.scan(plan)
    between = time.monotonic()
    built = tasks.drain(plan)
    shutil.rmtree(plan.scan_folder, ignore_errors=True)
    return _Drained(scanned, built, began - starting, between - began, time.monotonic() - between)


def _facts(plan: EpochPlan, drained: _Drained) -> dict[str, Any]:
    """Return the facts of the log event: bytes, records, damages, durations and rate."""
    rows = drained.built
    seconds = drained.scan_s + drained.build_s
    read = max(row["end_offset"] - row["start_offset"] for row in rows)
    return {
        "watermark": min(row["end_offset"] for row in rows),
        "bytes": read,
        "records": _total(rows, range(plan.shards)),
        "keys": _total(rows, [plan.shards]),
        "damages": sum(row["damages"] for row in rows),
        "ranges": len(drained.scanned),
        "reused_ranges": sum(row.reused for row in drained.scanned),
        "start_s": round(drained.start_s, 3),
        "scan_s": round(drained.scan_s, 3),
        "build_s": round(drained.build_s, 3),
        "bytes_per_s": round(read / seconds),
        "executors": executors_of(rows),
    }


def _total(rows: list[dict[str, Any]], shards: Sequence[int]) -> int:
    return sum(row["records"] for row in rows if row["shard"] in shards)
