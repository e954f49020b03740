"""Follows the log until a signal or a failure: understudy and Spark, scrub, metrics and traces."""

from __future__ import annotations

import contextlib
import shutil
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING

import structlog

from tidemark.index.warm_up import warm_up
from tidemark.metrics.families import make_registry
from tidemark.metrics.listener import listen
from tidemark.store.storage import Storage
from tidemark.tracing.opening import open_tracing

from .config import PipelineSettings
from .disk_room import is_disk_full, wait_for_room
from .epoch_reports import EpochListener, EpochReports
from .metrics import PipelineMetrics
from .plan import EpochPlan
from .prepare import prepare
from .shards.scrub import Scrub
from .spark.driver_process import DriverProcess
from .understudy import Understudy

if TYPE_CHECKING:
    from tidemark.tracing.exporting import Tracing

_LOOK_S = 0.2

log = structlog.get_logger()


def follow(settings: PipelineSettings, plan: EpochPlan, storage: Storage) -> None:
    """Run the understudy and Spark until a signal or a failure; wait for free space while the disk is full."""
    stopping = threading.Event()
    scrub = Scrub(plan, settings.scrub_bytes_per_s, storage)
    metrics = PipelineMetrics(plan, scrub, runs_spark=settings.runs_spark)
    tracing = open_tracing(settings, "pipeline")
    listeners: list[EpochListener] = [metrics]
    if tracing is not None:
        listeners.append(_index_spans(tracing))
    _serve_metrics(settings, metrics)
    shutil.rmtree(plan.scan_folder, ignore_errors=True)  # left by a killed drain; followers read the log
    prepare(plan, storage)
    warm_up()
    _stop_on_signal(stopping)  # only now: the steps before cannot be interrupted, so a signal ends the process
    scrub.start()
    try:
        while not _run_engines(settings, plan, storage, stopping, metrics, EpochReports(plan, listeners)):
            if not wait_for_room(plan, storage, stopping):
                break
            prepare(plan, storage)
            metrics.waits_for_room = False
            log.info("pipeline_goes_on")
    finally:
        scrub.close()
        if tracing is not None:
            tracing.close()
    log.info("pipeline_stopped")


def _serve_metrics(settings: PipelineSettings, metrics: PipelineMetrics) -> None:
    registry = make_registry()
    registry.register(metrics)
    listener = listen(settings.pipeline_metrics_listen, registry, setting="TIDEMARK_PIPELINE_METRICS_LISTEN")
    if listener is not None:
        log.info("metrics_served", port=listener.server_port)


def _stop_on_signal(stopping: threading.Event) -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)


def _index_spans(tracing: Tracing) -> EpochListener:
    from .index_spans import IndexSpans

    return IndexSpans(tracing.tracer)


def _run_engines(
    settings: PipelineSettings,
    plan: EpochPlan,
    storage: Storage,
    stopping: threading.Event,
    metrics: PipelineMetrics,
    reports: EpochListener,
) -> bool:
    """Run the understudy, and Spark if it is wanted. No task runs after the return.

    Return True once *stopping* is set, False when the disk is full. Spark is started again when it is lost. Another
    failure of the store ends both, because the understudy meets it too: its exception is raised.
    """
    with contextlib.ExitStack() as engines:
        understudy = Understudy(plan, storage, reports, yields=settings.runs_spark)
        understudy.start()
        engines.callback(understudy.stop)
        log.info("pipeline_started", shards=plan.shards, epoch_ms=plan.epoch_ms, store_root=str(plan.root))
        if settings.runs_spark:  # after the understudy, whose start it would delay
            driver = DriverProcess(settings, plan, reports)
            driver.start()
            engines.callback(driver.stop)
        while not stopping.wait(_LOOK_S):
            try:
                understudy.raise_failure()
            except Exception as error:
                if not is_disk_full(error):
                    raise
                metrics.waits_for_room = True
                log.error("pipeline_waits_for_room", message=str(error), store_root=str(plan.root))
                return False
    return True
