"""The programs in java/ and go/: built once, and run for one scenario each."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from benchmarks.peers.toolchain import ROCKETMQ, ToolchainMissingError, make_toolchain

Observations = dict[str, Any]
RUN_TIMEOUT_S = 400.0  # above the sum of the waits of one scenario
_HERE = Path(__file__).parent
_LAST_CHARACTERS = 4000
_GO_CLIENT = "github.com/apache/rocketmq-client-go/v2"
_JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Drocketmq.client.logUseSlf4j=true")


class Program(ABC):
    """A program with one subcommand for each scenario. *title* and *version* name its client library."""

    title: str
    version: str

    @abstractmethod
    def command(self, folder: Path) -> list[str]:
        """Return the start of the command. The client's own files go to *folder*."""

    def run(self, scenario: str, *, topic: str, group: str, name_server: str, folder: Path) -> Observations:
        """Run one scenario and return its observations. Raises AssertionError with the end of the program's output."""
        folder.mkdir(parents=True)
        environment: Mapping[str, str] = {
            **os.environ,
            "NAMESRV_ADDR": name_server,
            "HOME": str(folder),
            "ROCKETMQ_GO_LOG_LEVEL": "error",
        }
        output = folder / "errors.log"
        with output.open("wb") as errors:
            done = subprocess.run(
                [*self.command(folder), scenario, topic, group],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=errors,
                timeout=RUN_TIMEOUT_S,
                check=False,
            )
        assert done.returncode == 0, f"{scenario}: {output.read_text(errors='replace')[-_LAST_CHARACTERS:]}"
        observations: Observations = orjson.loads(done.stdout.splitlines()[-1])
        return observations


class JavaProgram(Program):
    """The Java client of RocketMQ's own release. Raises ToolchainMissingError."""

    title = "rocketmq-client (Java)"
    version = ROCKETMQ.version

    def __init__(self) -> None:
        self._toolchain = make_toolchain(ROCKETMQ, sorted((_HERE / "java").glob("*.java")))

    def command(self, folder: Path) -> list[str]:
        """Return the start of the command."""
        return self._toolchain.java("Scenarios", options=(*_JVM_OPTIONS, f"-Duser.home={folder}"))


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

    def command(self, folder: Path) -> list[str]:
        """Return the start of the command."""
        return [str(self._binary)]
