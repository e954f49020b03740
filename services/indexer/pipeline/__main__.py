"""The pipeline's entry point: settings → logging → prepare → Spark → follow, or drain and exit."""

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

    from .spark.job import EpochListener

log = structlog.get_logger()


def main(arguments: list[str] | None = None) -> int:
    """Run the pipeline and return the exit status: 0 done or stopped, 1 failed, 2 bad settings."""
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
    except Exception as error:  # a failed query's text holds its task's exception and pages of plans
        log.error("pipeline_failed", error=type(error).__name__, message=_last_line(str(error)))
        log.debug("pipeline_failed_at", exc_info=error)
        return 1
    return 0


def _last_line(text: str) -> str:
    """Return the message of the innermost Python exception in Spark's report."""
    lines = [line for line in text.split("=== Streaming Query ===", maxsplit=1)[0].splitlines() if line.strip()]
    return lines[-1] if lines else text


def _follow(settings: PipelineSettings, plan: EpochPlan, storage: DiskStorage) -> None:
    """Run both followers until a signal or a failure ends them; wait for free space while the disk is full."""
    stopping = threading.Event()

    scrub = Scrub(plan, settings.scrub_bytes_per_s, storage)
    metrics = PipelineMetrics(plan, scrub)
    tracing = open_tracing(settings, "pipeline")
    listeners: list[EpochListener] = [metrics]
    if tracing is not None:
        listeners.append(_index_spans(tracing))
    registry = make_registry()
    registry.register(metrics)
    listener = listen(settings.pipeline_metrics_listen, registry, setting="TIDEMARK_PIPELINE_METRICS_LISTEN")
    if listener is not None:
        log.info("metrics_served", port=listener.server_port)
    shutil.rmtree(plan.scan_folder, ignore_errors=True)  # left by a killed drain; followers read the log
    prepare(plan, storage)
    watchdog = JvmWatchdog(find_jvm, stopping)
    watchdog.start()
    session = start_session(settings, plan)
    _stop_on_signal(stopping)  # only now: the JVM's start cannot be interrupted, and Spark sets its own handler
    scrub.start()
    try:
        while True:
            try:
                _run_followers(session, settings, plan, stopping, listeners)
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


def _index_spans(tracing: Tracing) -> EpochListener:
    from .index_spans import IndexSpans

    return IndexSpans(tracing.tracer)


def _run_followers(
    session: SparkSession,
    settings: PipelineSettings,
    plan: EpochPlan,
    stopping: threading.Event,
    listeners: Sequence[EpochListener],
) -> None:
    """Run both queries until *stopping* is set. No task runs after the return.

    Raises the exception of a failed query.
    """
    from .spark import job

    plan = replace(plan, short_until_s=time.time() + settings.warm_up_ms / 1000)
    queries: list[StreamingQuery] = []
    checkpoint = new_checkpoint(plan)
    try:
        for follower in range(job.FOLLOWERS):
            if stopping.is_set():
                break
            queries.append(job.start_query(session, plan, follower, checkpoint / f"follower-{follower}", listeners))
            if follower == 0:
                if plan.epoch_ms:  # with 0, tasks end as soon as they have drained
                    _wait_until_followed(plan, queries[0], stopping, settings.start_timeout_s)
                log.info("pipeline_started", shards=plan.shards, epoch_ms=plan.epoch_ms, store_root=str(plan.root))
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
    """Block until every shard is held. The second query starts after this, so that its tasks wait for all shards.

    Started together, each query could take some of the shards.
    """
    deadline = time.monotonic() + timeout_s
    while not stopping.is_set() and not _has_ended([query]):
        if all(is_followed(plan, shard) for shard in range(plan.all_shards)):
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
    while time.monotonic() < deadline and any(is_at_work(plan, shard) for shard in range(plan.all_shards)):
        time.sleep(0.02)
    for query in queries:
        query.stop()


if __name__ == "__main__":
    sys.exit(main())
