"""Starts Spark's driver as a child process, and starts it again when it is lost."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import structlog

from ..config import PipelineSettings
from ..epoch_reports import EpochListener
from ..plan import EpochPlan
from .driver import run_driver

_FIRST_PAUSE_S = 1.0
_STOP_TIMEOUT_S = 25.0  # above the time that a driver waits for its tasks

log = structlog.get_logger()


class DriverProcess:
    """Spark's driver, kept running by a thread. The pause before a new start doubles with each failure in a row.

    reports  receives the rows of progress of each epoch of Spark
    """

    def __init__(self, settings: PipelineSettings, plan: EpochPlan, reports: EpochListener) -> None:
        self._settings = settings
        self._plan = plan
        self._reports = reports
        self._stopping = threading.Event()
        self._process: BaseProcess | None = None
        self._changing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="spark-driver", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the driver, its JVM and its tasks."""
        with self._changing:
            self._stopping.set()
            if self._process is not None:
                self._process.terminate()
        self._thread.join(_STOP_TIMEOUT_S)
        if self._thread.is_alive() and self._process is not None:
            log.warning("spark_killed", pid=self._process.pid, waited_s=_STOP_TIMEOUT_S)
            self._process.kill()
            self._thread.join()

    def _run(self) -> None:
        longest_s = self._settings.spark_restart_pause_ms / 1000
        pause_s = _FIRST_PAUSE_S
        while True:
            began = time.monotonic()
            lost = self._run_driver()
            if self._stopping.is_set():
                return
            if time.monotonic() - began > longest_s:
                pause_s = _FIRST_PAUSE_S
            pause_s = min(pause_s, longest_s)
            log.error("spark_lost", **lost, next_start_s=pause_s)
            self._stopping.wait(pause_s)
            pause_s *= 2

    def _run_driver(self) -> dict[str, Any]:
        """Start the driver, and return the facts of its end."""
        try:
            service = self._start()
        except OSError as error:  # no memory for a process, or a failed disk
            return {"error": str(error)}
        if service is None:
            return {}
        self._pass_reports_on(service)
        assert self._process is not None
        self._process.join()
        return {"exit_status": self._process.exitcode}

    def _start(self) -> Connection | None:
        """Start the driver and return the connection on which it reports; None if the service stops."""
        with self._changing:
            if self._stopping.is_set():
                return None
            self._plan.stop_flag.unlink(missing_ok=True)  # of a driver that has failed
            context = multiprocessing.get_context("spawn")
            service, driver = context.Pipe()
            self._process = context.Process(target=run_driver, args=(self._settings, self._plan, driver), name="spark")
            signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))  # inherited until the driver ignores it
            try:
                self._process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
            driver.close()
            return service

    def _pass_reports_on(self, service: Connection) -> None:
        """Pass the driver's reports on until it ends."""
        with service:
            while True:
                try:
                    rows = service.recv()
                except (EOFError, OSError):
                    return
                self._reports.epoch_finished(rows)
