"""Stack: the services and the consumer process, as processes that may be killed, on constant ports."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

import psutil

from tests.fixed_ports import fixed_ports
from tidemark.local.child_service import Service
from tidemark.local.local_stack import PIPELINE, QUERY, START_ORDER, WRITER
from tidemark.settings.registry import service_module

SIZES = {  # small, so that a few minutes have many files and hand-overs
    "COMMIT_LOG_SEGMENT_SIZE_BYTES": 1 << 20,
    "CONSUME_QUEUE_FILE_SIZE_BYTES": 4_000,
    "BATCH_CONSUME_QUEUE_FILE_SIZE_BYTES": 4_600,
    "INDEX_SLOTS": 1_000,
    "INDEX_ENTRIES": 4_000,
}
PACE = {
    "EPOCH_MS": 2_000,
    "CHUNK_SIZE_BYTES": 64 << 10,
    "DURABLE_INTERVAL_MS": 200,
    "QUERY_MAX_WAIT_MS": 2_000,
    "START_TIMEOUT_S": 600,
}
CONSUMERS = "consumers"
_MODULES = {
    WRITER: [service_module("writer")],
    PIPELINE: [service_module("indexer"), "pipeline"],
    QUERY: [service_module("indexer"), "query"],
    CONSUMERS: ["tests.soak.groups"],
}
_ORDER = (*START_ORDER, CONSUMERS)
_STOP_TIMEOUT_S = 60.0


class Member:
    """One service of the stack over its restarts. Each start has its own log."""

    def __init__(self, name: str, environment: dict[str, str], logs: Path, arguments: list[str] | None = None) -> None:
        self.name = name
        self.environment = environment
        self.logs = logs
        self.arguments = arguments or _MODULES[name]
        self.starts = 0
        self.asked_to_end = False  # killed or stopped by the soak, or a part of it was
        self._service: Service | None = None
        self._sessions: list[int] = []

    def start(self) -> None:
        """Start it, without waiting until it serves."""
        self.starts += 1
        self.asked_to_end = False
        log = self.logs / f"{self.name}-{self.starts:03d}.log"
        self._service = Service(self.name, self.arguments, self.environment, log)
        self._sessions.append(self._service.pid)

    @property
    def service(self) -> Service:
        """Return its latest process."""
        assert self._service is not None, "it was started"
        return self._service

    @property
    def is_running(self) -> bool:
        """Return True if its process exists, stopped or not."""
        return self._service is not None and self._service.exit_status is None

    @property
    def is_at_work(self) -> bool:
        """Return True if it is running and has logged its start; of the pipeline, that Spark follows."""
        event = "spark_follows" if self.name == PIPELINE else f"{self.name}_started"
        return self.is_running and f'"{event}"'.encode() in self.service.log_path.read_bytes()

    def processes(self) -> list[psutil.Process]:
        """Return all processes of its latest start: Spark's JVM and Python processes are in groups of their own."""
        return self._of_session(self.service.pid)

    def parts(self, kind: str) -> list[psutil.Process]:
        """Return the pipeline's Spark driver (`spark`), its JVM (`jvm`), or the JVM's Python processes (`worker`)."""
        sign = {"spark": "spawn_main", "jvm": "SparkSubmit", "worker": "spark.daemon"}[kind]
        return [process for process in self.processes() if sign in _command_line(process)]

    def signal_all(self, number: signal.Signals) -> None:
        """Send *number* to all its processes."""
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)

    def kill_all(self) -> None:
        """Send SIGKILL to all its processes."""
        self.asked_to_end = True
        self.signal_all(signal.SIGKILL)
        self.service.kill()
        self.signal_all(signal.SIGKILL)  # processes that were forked meanwhile

    def kill_driver(self) -> None:
        """Send SIGKILL only to its main process: its child processes must notice."""
        self.asked_to_end = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.service.pid, signal.SIGKILL)
        self.service.wait(_STOP_TIMEOUT_S)

    def terminate(self) -> None:
        """Send SIGTERM; `stop` waits."""
        self.asked_to_end = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.service.pid, signal.SIGTERM)

    def wait(self) -> int | None:
        """Return its exit status; None if it does not end."""
        return self.service.wait(_STOP_TIMEOUT_S)

    def left_behind(self) -> list[psutil.Process]:
        """Return the remaining processes of any start."""
        return [process for session in self._sessions for process in self._of_session(session)]

    def _of_session(self, session: int) -> list[psutil.Process]:
        root = self.environment["TIDEMARK_STORE_ROOT"]  # another process may have got this number since
        found = [process for process in psutil.process_iter() if _session_of(process) == session]
        return [process for process in found if _store_of(process) == root]


class Stack:
    """The services and the consumer process. Settings: `SIZES`, `PACE`, and the environment's TIDEMARK_ variables."""

    def __init__(self, folder: Path, seed: str, *, store: Path | None = None) -> None:
        self.store = store or folder / "store"
        self.logs = _new_folder(folder / "logs")
        writer_port, query_port, *remoting = fixed_ports(4)
        self.writer_address = f"127.0.0.1:{writer_port}"
        self.query_url = f"http://127.0.0.1:{query_port}"
        self.remoting_address = f"127.0.0.1:{remoting[0]}"  # of the writer, as a name server
        settings = {
            **SIZES,
            **PACE,
            "STORE_ROOT": self.store,
            "WRITER_LISTEN": self.writer_address,
            "WRITER_ADDRESS": self.writer_address,
            "ADVERTISED_ADDRESS": self.writer_address,  # otherwise the query service's remoting address
            "QUERY_LISTEN": f"127.0.0.1:{query_port}",
            "WRITER_REMOTING_LISTEN": self.remoting_address,
            "QUERY_REMOTING_LISTEN": f"127.0.0.1:{remoting[1]}",
            "WRITER_METRICS_LISTEN": "",
            "PIPELINE_METRICS_LISTEN": "",
        }
        environment = {f"TIDEMARK_{name}": str(value) for name, value in settings.items()}
        environment |= {"TIDEMARK_QUERY_URL": self.query_url, "SOAK_FOLDER": str(folder), "SOAK_SEED": seed}
        self.members = {name: Member(name, environment, self.logs) for name in _ORDER}

    def start(self) -> None:
        """Start the services."""
        for name in START_ORDER:
            self.members[name].start()

    def start_consumers(self) -> None:
        """Start the consumer process, once the topics exist."""
        self.members[CONSUMERS].start()

    def stop(self) -> dict[str, int | None]:
        """Send SIGTERM to running members, consumers first; return exit statuses by name (None: it keeps running)."""
        statuses: dict[str, int | None] = {}
        for name in reversed(_ORDER):
            member = self.members[name]
            if member.is_running:
                member.terminate()
                statuses[name] = member.wait()
        return statuses

    def kill(self) -> None:
        """Kill all remaining processes."""
        for member in self.members.values():
            if member.starts:
                member.kill_all()
            for process in member.left_behind():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def left_behind(self, within_s: float = 20.0) -> list[str]:
        """Return command lines of processes that outlive their service by more than *within_s*."""
        deadline = time.monotonic() + within_s
        while processes := [process for member in self.members.values() for process in member.left_behind()]:
            if time.monotonic() > deadline:
                return [f"{process.pid} {' '.join(process.cmdline()[:6])}" for process in processes]
            time.sleep(0.2)
        return []


def _new_folder(folder: Path) -> Path:
    """Make *folder*, or if it exists a folder of the same name with a number."""
    for number in itertools.count(1):
        made = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        with contextlib.suppress(FileExistsError):
            made.mkdir(parents=True)
            return made
    raise AssertionError("no free folder name was found")


def _session_of(process: psutil.Process) -> int | None:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return os.getsid(process.pid)
    except (OSError, psutil.Error):
        return None


def _store_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("TIDEMARK_STORE_ROOT")
    except psutil.Error:
        return None


def _command_line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
