"""The programs in java/ and go/: built once, and run for one scenario each."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from benchmarks.peers.toolchain import ROCKETMQ, ToolchainMissingError, make_toolchain

Observations = dict[str, Any]
RUN_TIMEOUT_S = 400.0  # above the sum of the waits of one scenario
_HERE = Path(__file__).parent
_LAST_CHARACTERS = 4000
_GO_CLIENT = "github.com/apache/rocketmq-client-go/v2"
_JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Drocketmq.client.logUseSlf4j=true")


class Way(NamedTuple):
    """How a program connects. options: of the JVM; environment: of each program."""

    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}


USUAL = Way()
BINARY = Way(
    options=("-Drocketmq.serialize.type=ROCKETMQ",)
)  # headers in the binary form; Go's client has no such setting


class Program(ABC):
    """A program with one subcommand for each scenario. *title* and *version* name its client library."""

    title: str
    version: str

    @property
    def name(self) -> str:
        """Return title and version."""
        return f"{self.title} {self.version}"

    @abstractmethod
    def command(self, folder: Path, way: Way) -> list[str]:
        """Return the start of the command. The client's own files go to *folder*."""

    def start(
        self,
        scenario: str,
        *,
        topic: str,
        group: str,
        name_server: str,
        folder: Path,
        errors: IO[bytes],
        way: Way = USUAL,
    ) -> subprocess.Popen[bytes]:
        """Start one scenario. It reads its standard input to the end only if it is a live one."""
        environment = {
            **os.environ,
            "NAMESRV_ADDR": name_server,
            "HOME": str(folder),
            "ROCKETMQ_GO_LOG_LEVEL": "error",
            **way.environment,
        }
        return subprocess.Popen(
            [*self.command(folder, way), scenario, topic, group],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )

    def run(
        self, scenario: str, *, topic: str, group: str, name_server: str, folder: Path, way: Way = USUAL
    ) -> Observations:
        """Run one scenario and return its observations. Raises AssertionError with the end of the program's output."""
        folder.mkdir(parents=True)
        output = folder / "errors.log"
        with (
            output.open("wb") as errors,
            self.start(
                scenario, topic=topic, group=group, name_server=name_server, folder=folder, errors=errors, way=way
            ) as process,
        ):
            try:
                answer, _ = process.communicate(timeout=RUN_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert process.returncode == 0, f"{scenario}: {output.read_text(errors='replace')[-_LAST_CHARACTERS:]}"
        observations: Observations = orjson.loads(answer.splitlines()[-1])
        return observations


class JavaProgram(Program):
    """The Java client of RocketMQ's own release. Raises ToolchainMissingError."""

    title = "rocketmq-client (Java)"
    version = ROCKETMQ.version

    def __init__(self) -> None:
        self._toolchain = make_toolchain(ROCKETMQ, sorted((_HERE / "java").glob("*.java")))

    def command(self, folder: Path, way: Way) -> list[str]:
        """Return the start of the command."""
        return self._toolchain.java("Scenarios", options=(*_JVM_OPTIONS, f"-Duser.home={folder}", *way.options))


class GoProgram(Program):
    """The Go client in the version of go/go.mod, built in *folder*. Raises ToolchainMissingError."""

    title = "rocketmq-client-go/v2 (Go)"
    version = next(
        line.split()[-1] for line in (_HERE / "go" / "go.mod").read_text().splitlines() if f"{_GO_CLIENT} v" in line
    )

    def __init__(self, folder: Path) -> None:
        if shutil.which("go") is None:
            raise ToolchainMissingError("go is missing: for RocketMQ's Go client, install Go 1.19 or newer")
        self._binary = folder / "scenarios"
        done = subprocess.run(
            ["go", "build", "-o", str(self._binary), "."], cwd=_HERE / "go", capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ToolchainMissingError(f"{self.title} cannot be built: {done.stderr[-_LAST_CHARACTERS:]}")

    def command(self, folder: Path, way: Way) -> list[str]:
        """Return the start of the command."""
        return [str(self._binary)]
