"""One real stack for the tests of this folder, and the real command as a separate program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixed_ports import fixed_port
from tests.integration.conftest import WITHOUT_SPARK
from tidemark.client import Query
from tidemark.local.local_stack import LocalStack

COMMAND = (sys.executable, "-m", "tidemark.cli")


class Tidemark:
    """`tidemark` as a user of one stack types it."""

    def __init__(self, writer_address: str, query_url: str, *, environment: dict[str, str] | None = None) -> None:
        self.query_url = query_url
        self.environment = environment or {
            **os.environ,
            "TIDEMARK_WRITER_ADDRESS": writer_address,
            "TIDEMARK_QUERY_URL": query_url,
        }

    def run(self, *arguments: object, given: str | bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a verb to its end; *given*: its standard input."""
        return subprocess.run(
            [*COMMAND, *map(str, arguments)],
            env=self.environment,
            input=given.encode() if isinstance(given, str) else given,
            capture_output=True,
            timeout=100,
            check=False,
        )

    def start(self, *arguments: object) -> subprocess.Popen[bytes]:
        """Start a verb; all three streams are pipes."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)], env=self.environment, stdin=pipe, stdout=pipe, stderr=pipe
        )

    def json(self, *arguments: object, given: str | bytes = b"", status: int = 0) -> Any:
        """Return the document that a verb prints with --output json; the verb must end with *status*."""
        done = self.run(*arguments, "--output", "json", given=given)
        assert done.returncode == status, done
        return json.loads(done.stdout)

    def messages(self, *arguments: object) -> list[dict[str, Any]]:
        """Return the messages that `consume … --output json` prints."""
        done = self.run("consume", *arguments, "--output", "json")
        assert done.returncode == 0, done
        return [json.loads(line) for line in done.stdout.splitlines()]

    def produce(self, topic: str, *arguments: object, given: str | bytes = b"") -> int:
        """Send, and wait until all is visible; return the number of acknowledged messages."""
        sent = self.json("produce", topic, *arguments, given=given)
        assert sent["complete"]
        self.wait_for(sent["end_physical_offset"])
        return int(sent["acknowledged"])

    def wait_for(self, physical_offset: int) -> None:
        """Wait until the watermark has reached it."""
        deadline = time.monotonic() + 30
        with Query(self.query_url) as query:
            while query.watermark()["watermark"]["physical_offset"] < physical_offset:
                assert time.monotonic() < deadline
                time.sleep(0.01)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Run writer, pipeline and query; each test uses its own topics and groups."""
    with LocalStack(tmp_path_factory.mktemp("cli") / "store", environment=WITHOUT_SPARK) as running:
        yield running


@pytest.fixture(scope="session")
def tidemark(stack: LocalStack) -> Tidemark:
    """Return the command for that stack."""
    return Tidemark(stack.writer_address, stack.query_url)


@pytest.fixture
def nowhere(tmp_path: Path) -> Tidemark:
    """Return the command for addresses without a service."""
    return Tidemark(f"127.0.0.1:{fixed_port()}", f"http://127.0.0.1:{fixed_port()}")
