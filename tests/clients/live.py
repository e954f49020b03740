"""Live programs: clients that run while a test kills processes, and the lines in which they report each event."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import NamedTuple, Self

from .programs import Program, Way

LIMIT_S = 120.0
_END_S = 60.0


class Received(NamedTuple):
    """A message that a consumer received."""

    queue_id: int
    body: str


class Live:
    """One run of a scenario live_…; `with` starts it, waits until it has started, and ends it if the test did not.

    One thread appends to the lists, others only read them.
    """

    def __init__(
        self, program: Program, scenario: str, name_server: str, *, topic: str, group: str, folder: Path, way: Way
    ) -> None:
        self.received: list[Received] = []
        self.acknowledged: list[str] = []
        self._has_started = threading.Event()
        self._errors_path = folder / "errors.log"
        folder.mkdir(parents=True)
        self._errors = self._errors_path.open("wb")
        self._process = program.start(
            scenario,
            topic=topic,
            group=group,
            name_server=name_server,
            folder=folder,
            errors=self._errors,
            way=way,
        )
        self._reading = threading.Thread(target=self._read, name="live")
        self._reading.start()

    def __enter__(self) -> Self:
        started = self._has_started.wait(LIMIT_S)
        assert started, self._errors_path.read_text(errors="replace")[-2_000:]
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def bodies(self) -> list[str]:
        """Return the bodies of the received messages."""
        return [one.body for one in list(self.received)]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, *rest = line.decode().split()
            if word == "started":
                self._has_started.set()
            elif word == "received":
                self.received.append(Received(int(rest[0]), rest[1]))
            elif rest:
                self.acknowledged.append(rest[-1])

    def end(self) -> None:
        """End the program as its user does, and wait for its end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_END_S)
        self._reading.join()

    def kill(self) -> None:
        """Kill the program."""
        self._process.kill()
        self._process.wait()
        self._reading.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._errors.close()
