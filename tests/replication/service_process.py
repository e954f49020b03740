"""Services as forks of one process that has imported them: a member starts with less processor time.

A fork runs a service's entry point with its own environment, output and signals. `tests/integration` starts services
as users do.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["tests.replication.preloaded"])


class ServiceProcess:
    """A running module. Methods are those of subprocess.Popen."""

    def __init__(self, module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self._process = _FORKS.Process(target=_run, args=(module, arguments, dict(environment), log), name=module)
        self._process.start()
        self.module = module

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self._process.is_alive():
            assert self._process.pid is not None
            os.kill(self._process.pid, number)

    def terminate(self) -> None:
        """Send it SIGTERM, unless it has ended."""
        self._process.terminate()

    def kill(self) -> None:
        """Send it SIGKILL, unless it has ended."""
        self._process.kill()

    def wait(self, timeout_s: float) -> int:
        """Return its exit status. subprocess.TimeoutExpired: it is still running."""
        self._process.join(timeout_s)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout_s)
        return self._process.exitcode


def _run(module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
