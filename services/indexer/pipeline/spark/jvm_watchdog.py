"""A watchdog that ends the process when Spark's JVM is gone: calls into it may otherwise block for minutes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Protocol

import structlog

_LOOK_EVERY_S = 0.5
_GRACE_S = 3.0  # for the main thread to end by itself and report its own failure
_STOPPING_GRACE_S = 30.0  # systemd signals the JVM together with the pipeline: the stop may complete

log = structlog.get_logger()


class JvmProcess(Protocol):
    """The part of `subprocess.Popen` that the watchdog needs."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit status; None while the process lives."""


class JvmWatchdog:
    """Thread that watches the JVM.

    find     returns the JVM's process; None before it exists, and if another program started it
    stopping set once the pipeline is asked to stop
    end      ends this process at once
    """

    def __init__(
        self,
        find: Callable[[], JvmProcess | None],
        stopping: threading.Event,
        *,
        end: Callable[[int], object] = os._exit,
        grace_s: float = _GRACE_S,
    ) -> None:
        self._find = find
        self._stopping = stopping
        self._end = end
        self._grace_s = grace_s
        self._closed = threading.Event()
        self._reporting = threading.Lock()  # the main thread reports, too, if its own call fails first
        self._is_reported = False
        self._thread = threading.Thread(target=self._run, name="jvm-watchdog", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop watching, because the session ends normally."""
        self._closed.set()

    def report(self) -> bool:
        """Return True if the JVM is gone, and log that once."""
        process = self._find()
        status = None if process is None else process.poll()
        if process is None or status is None:
            return False
        with self._reporting:
            if not self._is_reported:
                log.error("spark_jvm_lost", pid=process.pid, exit_status=status)
            self._is_reported = True
        return True

    def _run(self) -> None:
        while not self._closed.wait(_LOOK_EVERY_S):
            if not self.report():
                continue
            if not self._closed.wait(_STOPPING_GRACE_S if self._stopping.is_set() else self._grace_s):
                sys.stdout.flush()
                sys.stderr.flush()
                self._end(1)
            return


def find_jvm() -> JvmProcess | None:
    """Return the process of PySpark's gateway."""
    from pyspark import SparkContext

    return getattr(SparkContext._gateway, "proc", None)
