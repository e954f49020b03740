"""Server: a Java server as a child process. Running: the base of objects that run such servers."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

START_TIMEOUT_S = 600.0  # long, because a broker rebuilds the queues of a large log before it serves
STOP_TIMEOUT_S = 120.0
_POLL_S = 0.005
_LAST_CHARACTERS = 4000


class Running(ABC):
    """A base class for objects that `with` starts and always ends."""

    @abstractmethod
    def start(self) -> Self:
        """Start, and return when it serves."""

    @abstractmethod
    def close(self) -> None:
        """End everything."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


class Server:
    """Starts *command*, with its output in the file *output*. started_ns: time.monotonic_ns() just before the exec."""

    def __init__(self, command: Sequence[str], output: Path, environment: Mapping[str, str] | None = None) -> None:
        self.output = output
        with output.open("wb") as file:
            self.started_ns = time.monotonic_ns()
            self._process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Block until *ready* returns True. If the process ends or takes too long, end it and raise AssertionError."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while not ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                last = self.output.read_text(errors="replace")[-_LAST_CHARACTERS:]
                raise AssertionError(f"{self.output.stem} did not start: {last}")
            time.sleep(_POLL_S)

    def says(self, text: bytes) -> bool:
        """Return True if the output contains *text*."""
        return text in self.output.read_bytes()

    def stop(self) -> None:
        """Stop with SIGTERM and wait. After a timeout, kill and raise subprocess.TimeoutExpired."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill with SIGKILL."""
        self._process.kill()
        self._process.wait()
