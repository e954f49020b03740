"""Standalone: a Spark cluster on loopback, with master and workers as processes that tests may kill.

They are the pip package's own classes, started by its `spark-class`. Each process has its own session, which includes
the
worker's executors and their Python processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pyspark

from tests.fixed_ports import fixed_ports

SPARK_HOME = Path(pyspark.__file__).parent
_HOST = "127.0.0.1"
_DEPLOY = "org.apache.spark.deploy"
_SMALL_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_START_TIMEOUT_S = 240.0
_POLL_S = 0.1


class Daemon:
    """A master, or a worker with its executors."""

    def __init__(self, name: str, arguments: list[str], environment: dict[str, str], log: Path) -> None:
        self.name = name
        self._command = [str(SPARK_HOME / "bin" / "spark-class"), *arguments]
        self._environment = environment
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start or restart it; `Standalone.wait_until_registered` waits."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Return the pid of its JVM, which has replaced the script."""
        assert self._process is not None, "it was started"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Return True if it was started and has not ended since."""
        return self._process is not None and self._process.poll() is None

    def last_lines(self, count: int = 20) -> list[str]:
        """Return the end of its log."""
        return self._log.read_text(errors="replace").splitlines()[-count:]

    def executors(self) -> list[psutil.Process]:
        """Return the JVMs of its executors."""
        return [child for child in psutil.Process(self.pid).children() if _is_executor(child)]

    def processes(self) -> list[psutil.Process]:
        """Return its process and all processes that it has started, including orphaned ones."""
        return [process for process in psutil.process_iter() if session_of(process) == self.pid]

    def kill(self) -> None:
        """Kill all its processes with SIGKILL at once: for the others, its host is gone."""
        if self._process is None:
            return
        while processes := self.processes():  # again, for processes that were forked meanwhile
            signal_all(processes, signal.SIGKILL)
            self._process.poll()  # otherwise it stays a zombie
        self._process.wait()
        self._process = None


class Standalone:
    """A master and *workers* workers with *cores* slots each; `with` starts them, and removes everything at the end.

    url          value for TIDEMARK_SPARK_MASTER
    environment  environment variables that a driver needs
    """

    def __init__(self, *, workers: int = 2, cores: int = 6) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="tidemark-spark-", ignore_cleanup_errors=True
        )  # sockets need a short path
        folder = Path(self._folder.name)
        port, self._ui_port = fixed_ports(2)
        self.url = f"spark://{_HOST}:{port}"
        self.environment = {"TIDEMARK_SPARK_MASTER": self.url, "SPARK_LOCAL_IP": _HOST}
        daemons = self._environment(folder)
        self.master = Daemon(
            "master",
            [f"{_DEPLOY}.master.Master", "--host", _HOST, "--port", str(port), "--webui-port", str(self._ui_port)],
            daemons,
            folder / "master.log",
        )
        sizes = ["--cores", str(cores), "--memory", f"{cores}g", "--webui-port", "0"]
        self.workers = [
            Daemon(
                f"worker-{number}",
                [f"{_DEPLOY}.worker.Worker", "--host", _HOST, *sizes, "--work-dir", str(folder / name), self.url],
                daemons,
                folder / f"{name}.log",
            )
            for number, name in enumerate(f"worker-{number}" for number in range(workers))
        ]

    @staticmethod
    def _environment(folder: Path) -> dict[str, str]:
        """Return an environment without this machine's own Spark, in which all writes go below *folder*."""
        for name in ("conf", "t", "local", "recovery"):
            (folder / name).mkdir()
        recovery = f"-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={folder / 'recovery'}"
        return {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_CONF_DIR": str(folder / "conf"),
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{_SMALL_JVM} {recovery}",
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={folder / 't'} -XX:-UsePerfData",
        }

    def start(self) -> None:
        """Start all, and wait until the workers are registered."""
        for daemon in (self.master, *self.workers):
            daemon.start()
        self.wait_until_registered()

    def repair_processes(self) -> None:
        """Start the killed processes, and wait until the workers are registered."""
        for daemon in (self.master, *self.workers):
            if not daemon.is_running:
                daemon.start()
        self.wait_until_registered()

    def repair(self) -> None:
        """Start the killed processes, and wait until no application is left."""
        self.repair_processes()
        self._wait_until(lambda status: not status["activeapps"])

    def stop(self) -> None:
        """Kill all, and remove their files."""
        for daemon in (*self.workers, self.master):
            daemon.kill()
        self._folder.cleanup()

    def __enter__(self) -> Standalone:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def status(self) -> dict[str, Any] | None:
        """Return the master's report of workers and applications; None while it has none."""
        try:
            with urllib.request.urlopen(f"http://{_HOST}:{self._ui_port}/json/", timeout=5) as answer:
                found: dict[str, Any] = json.load(answer)
        except (OSError, json.JSONDecodeError):  # a starting master answers with a page before the report exists
            return None
        return found

    def wait_until_registered(self) -> None:
        """Wait until the master knows all running workers."""
        running = sum(worker.is_running for worker in self.workers)
        self._wait_until(lambda status: status["status"] == "ALIVE" and _alive(status) == running)

    def wait_until_application_runs(self) -> None:
        """Wait until the master knows an application and has received its state."""
        self._wait_until(lambda status: any(app["state"] == "RUNNING" for app in status["activeapps"]))

    def _wait_until(self, holds: Callable[[dict[str, Any]], bool]) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while (status := self.status()) is None or not holds(status):
            assert time.monotonic() < deadline, (status, self.master.last_lines())
            time.sleep(_POLL_S)

    def times_told(self, text: str) -> int:
        """Return the number of log lines of executors with *text*, of all applications."""
        logs = Path(self._folder.name).glob("worker-*/app-*/*/stderr")
        return sum(log.read_text(errors="replace").count(text) for log in logs)

    def worker_of(self, pid: int) -> Daemon:
        """Return the worker that has started a process, an executor or one of its tasks."""
        (found,) = [worker for worker in self.workers if worker.is_running and worker.pid == os.getsid(pid)]
        return found


def parts_of(executor: psutil.Process) -> list[psutil.Process]:
    """Return an executor's JVM and its Python processes."""
    return [executor, *executor.children(recursive=True)]


def signal_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    """Send *number* to the processes that still exist."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _alive(status: dict[str, Any]) -> int:
    return sum(worker["state"] == "ALIVE" for worker in status["workers"])


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(word.endswith("CoarseGrainedExecutorBackend") for word in process.cmdline())
    except psutil.Error:
        return False


def session_of(process: psutil.Process) -> int | None:
    """Return the id of its session, the pid of the daemon that has started it; None if it has ended."""
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else os.getsid(process.pid)
    except (OSError, psutil.Error):
        return None
