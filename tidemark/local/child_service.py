"""Service: one service as a child process, with a log file and a bounded stop."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_TAIL_BYTES = 16 << 10


class Service:
    """A running service, in its own process group: Ctrl-C in a terminal does not reach it."""

    def __init__(self, name: str, arguments: list[str], environment: Mapping[str, str], log_path: Path) -> None:
        """Start `python -m <arguments>` with this interpreter; its output overwrites *log_path*."""
        self.name = name
        self.log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own modules
                [sys.executable, "-m", "tidemark.local.child_main", *arguments],
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,  # closes when this process ends: see tidemark.local.child_main
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Return the exit status; None while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def last_lines(self, count: int = 20) -> list[str]:
        """Return the last lines of its log."""
        with self.log_path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return log.read().decode(errors="replace").splitlines()[-count:]

    def wait(self, timeout_s: float) -> int | None:
        """Wait for its end; return its exit status, or None if it still runs after *timeout_s*."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def stop(self, timeout_s: float) -> int:
        """Send SIGTERM and wait for *timeout_s*; then kill it and its child processes. Return its exit status."""
        if self.exit_status is None:
            self._process.terminate()
            self.wait(timeout_s)
        return self.kill()

    def kill(self) -> int:
        """Send SIGKILL to it and its child processes. Return its exit status."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self._process.stdin:
            self._process.stdin.close()
        return self._process.wait()
