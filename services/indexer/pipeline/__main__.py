"""The pipeline's door: settings → logging → prepare → Spark → follow, or drain and exit."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

import structlog

from tidemark.errors import StoreError
from tidemark.metrics.families import make_registry
from tidemark.metrics.listener import listen
from tidemark.settings.door import SettingsRefusedError, read_settings
from tidemark.settings.logs import set_up_logging
from tidemark.settings.startup import restore_signals
from tidemark.store.open_files_limit import allow_many_files
from tidemark.store.originals.format_file import require_known_format
from tidemark.store.safety import require_safe_store
from tidemark.store.storage import DiskStorage
from tidemark.tracing.opening import open_tracing

from .config import PipelineSettings
from .disk_room import is_disk_full, wait_for_room
from .metrics import PipelineMetrics
from .once import run_once
from .plan import EpochPlan, make_plan
from .prepare import own_indexer, prepare
from .shards.hand_over import is_at_work, is_followed
from .shards.scrub import Scrub
from .spark.driver_priority import step_back
from .spark.jvm_watchdog import JvmWatchdog, find_jvm
from .spark.session import start_session
from .spark.spark_checkpoint import new_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from tidemark.tracing.exporting import Tracing

    from .spark.job import EpochTold

log = structlog.get_logger()


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0 done or stopped, 1 failed, 2 bad settings."""
    try:
        settings = read_settings("pipeline", PipelineSettings, sys.argv[1:] if arguments is None else arguments)
    except SettingsRefusedError as error:
        sys.stderr.writelines(f"{line}\n" for line in error.lines)
        return 2
    set_up_logging(settings.log_level)
    allow_many_files()
    storage = DiskStorage()
    plan = make_plan(settings)
    try:
        require_known_format(plan.paths)
        require_safe_store(plan.paths)
        with own_indexer(plan, storage):
            if settings.once:
                restore_signals()
                run_once(settings, storage)
            else:
                _follow(settings, plan, storage)
    except StoreError as error:
        log.error("pipeline_failed", error=type(error).__name__, message=error.message, **error.facts)
        return 1
    except Exception as error:  # a failed query carries its task's exception, and pages of plans, as text
        log.error("pipeline_failed", error=type(error).__name__, message=_last_line(str(error)))
        log.debug("pipeline_failed_at", exc_info=error)
        return 1
    return 0


def _last_line(text: str) -> str:
    """What the innermost Python exception in Spark's report said."""
    lines = [line for line in text.split("=== Streaming Query ===", maxsplit=1)[0].splitlines() if line.strip()]
    return lines[-1] if lines else text


def _follow(settings: PipelineSettings, plan: EpochPlan, storage: DiskStorage) -> None:
    """Run both followers until a signal or a failure ends them; wait for room on a full disk."""
    stopping = threading.Event()

    scrub = Scrub(plan, settings.scrub_bytes_per_s, storage)
    metrics = PipelineMetrics(plan, scrub)
    tracing = open_tracing(settings, "pipeline")
    told: list[EpochTold] = [metrics]
    if tracing is not None:
        told.append(_index_spans(tracing))
    registry = make_registry()
    registry.register(metrics)
    listener = listen(settings.pipeline_metrics_listen, registry, setting="TIDEMARK_PIPELINE_METRICS_LISTEN")
    if listener is not None:
        log.info("metrics_served", port=listener.server_port)
    shutil.rmtree(plan.scan_folder, ignore_errors=True)  # of a drain that was killed: who follows reads the log
    prepare(plan, storage)
    watchdog = JvmWatchdog(find_jvm, stopping)
    watchdog.start()
    session = start_session(settings, plan)
    _stop_on_signal(stopping)  # not before: nothing interrupts the start of a JVM, and Spark sets a handler of its own
    scrub.start()
    try:
        while True:
            try:
                _run_followers(session, settings, plan, stopping, told)
                break
            except Exception as error:
                if not is_disk_full(error):
                    raise
                metrics.waits_for_room = True
                log.error("pipeline_waits_for_room", message=_last_line(str(error)), store_root=str(plan.root))
            if not wait_for_room(plan, storage, stopping):
                break
            prepare(plan, storage)
            metrics.waits_for_room = False
            log.info("pipeline_goes_on")
    finally:
        scrub.close()
        watchdog.report()
        session.stop()
        watchdog.close()
        if tracing is not None:
            tracing.close()
    log.info("pipeline_stopped")


def _stop_on_signal(stopping: threading.Event) -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def _index_spans(tracing: Tracing) -> EpochTold:
    from .index_spans import IndexSpans

    return IndexSpans(tracing.tracer)


def _run_followers(
    session: SparkSession,
    settings: PipelineSettings,
    plan: EpochPlan,
    stopping: threading.Event,
    told: Sequence[EpochTold],
) -> None:
    """Until *stopping*; raises what a query failed with. No task runs afterwards."""
    from .spark import job

    plan = replace(plan, short_until_s=time.time() + settings.warm_up_ms / 1000)
    queries: list[StreamingQuery] = []
    checkpoint = new_checkpoint(plan)
    try:
        for follower in range(job.FOLLOWERS):
            if stopping.is_set():
                break
            queries.append(job.start_query(session, plan, follower, checkpoint / f"follower-{follower}", told))
            if follower == 0:
                if plan.epoch_ms:  # else tasks end as soon as they have drained
                    _wait_until_followed(plan, queries[0], stopping, settings.start_timeout_s)
                log.info("pipeline_started", shards=plan.shards, epoch_ms=plan.epoch_ms, store_root=str(plan.root))
        driver = getattr(session.sparkContext._gateway, "proc", None)  # None: somebody else has started it
        if plan.epoch_ms and driver is not None:
            step_back(driver.pid)
        while not stopping.is_set() and not _has_ended(queries):
            stopping.wait(0.5)
    finally:
        _stop(plan, queries)


def _has_ended(queries: list[StreamingQuery]) -> bool:
    """Whether a query has ended; raises what it failed with."""
    for query in queries:
        if not query.isActive:
            error = query.exception()
            if error is not None:
                raise error
            return True
    return False


def _wait_until_followed(plan: EpochPlan, query: StreamingQuery, stopping: threading.Event, timeout_s: float) -> None:
    """Until every shard is held. The second query starts only then: its tasks are to wait, not to share."""
    deadline = time.monotonic() + timeout_s
    while not stopping.is_set() and not _has_ended([query]):
        if all(is_followed(plan, shard) for shard in range(plan.all_shards)):
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"no task follows after {timeout_s} s")
        time.sleep(0.02)


def _stop(plan: EpochPlan, queries: list[StreamingQuery]) -> None:
    """Ask the tasks to end, wait for them, then end the queries: stopping a query in an epoch kills Spark's thread."""
    with contextlib.suppress(OSError):  # a full disk may not take it: then the queries are stopped as they are
        plan.stop_flag.touch()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and any(is_at_work(plan, shard) for shard in range(plan.all_shards)):
        time.sleep(0.02)
    for query in queries:
        query.stop()


if __name__ == "__main__":
    sys.exit(main())
