"""Peer: a real system on loopback with its load programs; the common part of RocketMQ and Kafka."""

from __future__ import annotations

import enum
import os
import subprocess
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import orjson

from benchmarks.peers.server import Running, Server
from benchmarks.peers.toolchain import Product, Toolchain, load_programs, make_toolchain

Answer = dict[str, Any]
CLIENT_OPTIONS = ("-Xms512m", "-Xmx1g")
LOAD_TIMEOUT_S = 3600.0
_LAST_CHARACTERS = 4000


class Flush(enum.Enum):
    """The time of an append's answer: after the fsync that covers it, or after the write."""

    SYNC = "sync"
    ASYNC = "async"


class PeerFailedError(Exception):
    """Error of a load program that failed, so that there is no figure. The text is the end of its output."""


class Peer(Running):
    """A system in *folder* with its load programs. `with` starts and ends it."""

    product: Product

    def __init__(self, folder: Path, flush: Flush) -> None:
        self.folder = folder.absolute()
        self.flush = flush
        self.toolchain: Toolchain = make_toolchain(self.product, load_programs(self.product))
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    @abstractmethod
    def store(self) -> Path:
        """The folder of its files."""

    @property
    @abstractmethod
    def server(self) -> Server:
        """The process that serves."""

    @abstractmethod
    def create_topic(self, topic: str, queues: int) -> None:
        """Create *topic* with this many queues or partitions."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the system with a clean shutdown."""

    @abstractmethod
    def kill(self) -> None:
        """Kill the system with SIGKILL."""

    @abstractmethod
    def _client_properties(self) -> dict[str, object]:
        """Return the properties with which a load program finds the system."""

    def load(self, program: str, **settings: object) -> Answer:
        """Run java/<product>/<program>.java to its end and return its answer. Raises PeerFailedError."""
        with self.begin(program, **settings) as running:
            return running.answer()

    def begin(self, program: str, **settings: object) -> Load:
        """Start the load program; `with` ends it."""
        return begin_program(self.toolchain, program, {**self._client_properties(), **settings}, self.folder)


def begin_program(toolchain: Toolchain, program: str, properties: Mapping[str, object], folder: Path) -> Load:
    """Start a load program with *properties*, its output in *folder*; `with` ends it."""
    options = [*CLIENT_OPTIONS, *(f"-D{name}={value}" for name, value in properties.items())]
    return Load(toolchain.java(program, options=options), folder / f"{program}.out")


class Load:
    """A running load program, which `with` ends. errors: the file for its output other than answers.

    environment  further environment variables
    """

    def __init__(self, command: list[str], errors: Path, environment: Mapping[str, str] | None = None) -> None:
        self._errors = errors
        with errors.open("wb") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                bufsize=0,
                env={**os.environ, **(environment or {})},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def next_line(self) -> Answer:
        """Wait for the next line of JSON and return it. Raises PeerFailedError."""
        assert self._process.stdout is not None
        return self._parse(self._process.stdout.readline())

    def go_on(self) -> None:
        """Send the line for which the program waits."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")

    def answer(self) -> Answer:
        """Wait for the program's successful end and return its last line. Raises PeerFailedError."""
        output, _ = self._process.communicate(timeout=LOAD_TIMEOUT_S)
        return self._parse(output.splitlines()[-1] if output and self._process.returncode == 0 else b"")

    def _parse(self, line: bytes) -> Answer:
        if not line.startswith(b"{"):
            raise PeerFailedError(
                f"{self._errors.stem}: {self._errors.read_text(errors='replace')[-_LAST_CHARACTERS:]}"
            )
        answer: Answer = orjson.loads(line)
        return answer

    def kill(self) -> None:
        """Kill the program."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
