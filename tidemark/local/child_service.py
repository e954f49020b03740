"""One service as a child process: start it with a log file, ask how it is, stop it within a bound."""

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
    """A running service, in a process group of its own: Ctrl-C in a terminal reaches us and not it."""

    def __init__(self, name: str, arguments: list[str], environment: Mapping[str, str], log_path: Path) -> None:
        """Start `python -m <arguments>` with this interpreter; its output goes to *log_path*, which is begun anew."""
        self.name = name
        self.log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own modules
                [sys.executable, "-m", "tidemark.local.child_main", *arguments],
                env={**os.environ, **environment},
                stdin=subprocess.PIPE,  # closes when we are gone: tidemark.local.child_main
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """None while it runs; negative: the signal that ended it."""
        return self._process.poll()

    def last_lines(self, count: int = 20) -> list[str]:
        """The end of its log."""
        with self.log_path.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return log.read().decode(errors="replace").splitlines()[-count:]

    def wait(self, timeout_s: float) -> int | None:
        """Its exit status; None when it runs on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout_s)
        return None

    def stop(self, timeout_s: float) -> int:
        """SIGTERM, then after *timeout_s* SIGKILL; also to what it has left behind. Returns its exit status."""
        if self.exit_status is None:
            self._process.terminate()
            self.wait(timeout_s)
        return self.kill()

    def kill(self) -> int:
        """SIGKILL to it and everything it started. Returns its exit status."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        if self._process.stdin:
            self._process.stdin.close()
        return self._process.wait()
