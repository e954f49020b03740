"""Spark's driver, in a process of its own: the service outlives it."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from types import FrameType
from typing import Any

import structlog

from tidemark.settings.logs import set_up_logging

from ..config import PipelineSettings
from ..plan import EpochPlan
from .failures import last_line
from .jvm_watchdog import JvmWatchdog, find_jvm
from .session import start_session

log = structlog.get_logger()


def run_driver(settings: PipelineSettings, plan: EpochPlan, service: Connection) -> None:
    """Follow the log on Spark until SIGTERM, or until the service is gone. Exit status 1 after a failure.

    service: the rows of progress of each epoch are sent to it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal signals the service too, which then stops this process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
    set_up_logging(settings.log_level)
    threading.Thread(target=_end_with_service, args=(service,), name="service-watch", daemon=True).start()
    if settings.is_local:
        plan = replace(plan, driver_pid=os.getpid())
    try:
        _follow(settings, plan, _Sender(service))
    except Exception as error:
        log.error("spark_failed", error=type(error).__name__, message=last_line(str(error)))
        log.debug("spark_failed_at", exc_info=error)
        sys.exit(1)


class _Sender:
    """Listener that sends rows to the service. Both followers call it, each from its own thread."""

    def __init__(self, service: Connection) -> None:
        self._service = service
        self._sending = threading.Lock()

    def epoch_finished(self, rows: Sequence[Mapping[str, Any]]) -> None:
        with self._sending:
            self._service.send(rows)


def _end_with_service(service: Connection) -> None:
    """End this process when the service is gone. Spark's JVM and tasks end with it."""
    try:
        service.recv()  # the service sends nothing
    except (EOFError, OSError):
        os._exit(1)


def _follow(settings: PipelineSettings, plan: EpochPlan, reports: _Sender) -> None:
    from .queries import run_followers

    stopping = threading.Event()
    watchdog = JvmWatchdog(find_jvm, stopping)
    watchdog.start()
    session = start_session(settings, plan)
    _stop_on_signal(stopping)  # only now: the JVM's start cannot be interrupted, and Spark sets its own handler
    try:
        run_followers(session, settings, plan, stopping, reports)
    finally:
        watchdog.report()
        session.stop()
        watchdog.close()


def _stop_on_signal(stopping: threading.Event) -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Spark has set a handler
