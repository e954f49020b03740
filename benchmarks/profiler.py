"""Records flame graphs of the processes of one benchmark with py-spy, while its clock runs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
from rich.console import Console

from benchmarks.benchmark import Benchmark
from benchmarks.clock import recording_with
from benchmarks.runner import Run, run_benchmarks

PROCESSES = {  # role → pattern in the command line
    "writer": re.compile(r"services\.writer\b"),
    "pipeline": re.compile(r"services\.indexer pipeline\b"),
    "worker": re.compile(r"pyspark\.daemon|services\.indexer\.pipeline\.spark\.daemon"),
    "query": re.compile(r"services\.indexer query\b"),
    "rebuild": re.compile(r"tidemark\.cli\.main store rebuild"),
    "client": re.compile(r"multiprocessing\.spawn import spawn_main"),
}
_LOOK_S = 0.2
_SETTLE_S = 2.0  # time until a new py-spy takes samples
_STOP_S = 60.0


def profile_benchmark(
    benchmark: Benchmark,
    folder: Path,
    scale: float,
    console: Console,
    *,
    wanted: Sequence[str],
    results: Path,
    only: int,
) -> tuple[Run, dict[str, list[Path]]]:
    """Run *benchmark*, record the *wanted* processes, and return the measurements and the flame graphs by process.

    only  the measured round whose graphs are returned, from 1; -1 for the last one
    """
    results.mkdir(exist_ok=True)
    prefix = f"{time.strftime('%Y%m%d-%H%M%S')}-{benchmark.name}"
    recorder = _Recorder(wanted, results, prefix)
    with recording_with(recorder.record):
        run = run_benchmarks([benchmark], folder, scale, console)
    chosen = range(1, recorder.rounds + 1)[only if only < 0 else only - 1]
    return run, {
        role: [path for number, path in paths if number == chosen and path.exists() and path.stat().st_size]
        for role, paths in recorder.paths.items()
    }


class _Recorder:
    """Attaches a py-spy to each wanted descendant of this process, including later ones."""

    def __init__(self, wanted: Sequence[str], results: Path, prefix: str) -> None:
        self._wanted = {name: PROCESSES[name] for name in wanted}
        self._results = results
        self._prefix = prefix
        self._spies: dict[int, subprocess.Popen[bytes]] = {}
        self.rounds = 0
        self.paths: dict[str, list[tuple[int, Path]]] = {name: [] for name in wanted}

    @contextlib.contextmanager
    def record(self) -> Iterator[None]:
        """Record while the context is active; a benchmark may measure several times."""
        self.rounds += 1
        stopping = threading.Event()
        self._attach()
        time.sleep(_SETTLE_S)
        thread = threading.Thread(target=self._keep_attaching, args=(stopping,))
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join()
            self._end()

    def _keep_attaching(self, stopping: threading.Event) -> None:
        while not stopping.wait(_LOOK_S):
            self._attach()

    def _attach(self) -> None:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                role = role_of(process.cmdline(), self._wanted)
                if role is not None and process.pid not in self._spies:
                    self._spies[process.pid] = self._spy(role, process.pid)

    def _spy(self, role: str, pid: int) -> subprocess.Popen[bytes]:
        path = self._results / f"{self._prefix}-{self.rounds}-{role}-{pid}.svg"
        self.paths[role].append((self.rounds, path))
        command = [
            _py_spy(),
            "record",
            "--pid",
            str(pid),
            "--output",
            str(path),
            "--rate",
            "200",
            "--duration",
            "unlimited",
        ]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def _end(self) -> None:
        for spy in self._spies.values():
            if spy.poll() is None:
                os.kill(spy.pid, signal.SIGINT)  # py-spy writes its samples
        for spy in self._spies.values():
            spy.wait(_STOP_S)
        self._spies.clear()


def role_of(command_line: Sequence[str], roles: dict[str, re.Pattern[str]]) -> str | None:
    """Return the role of a process; None for other processes, such as a JVM or py-spy itself."""
    if not command_line or "python" not in Path(command_line[0]).name:
        return None
    text = " ".join(command_line)
    return next((name for name, pattern in roles.items() if pattern.search(text)), None)


def _py_spy() -> str:
    """Return the path of py-spy: in the interpreter's folder, or in PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if found is None:
        raise FileNotFoundError("py-spy is not installed: pip install --group bench")
    return found
