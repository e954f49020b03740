"""`tidemark serve` as a user starts and stops it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.fixed_ports import fixed_port

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]


class Served:
    """`python -m tidemark.cli serve` on free ports; *lines*: its output so far."""

    def __init__(self, data: Path) -> None:
        self.url = f"http://127.0.0.1:{(port := fixed_port())}"
        ports = ["--writer-port", str(fixed_port()), "--query-port", str(port)]
        ports += ["--writer-remoting-port", str(fixed_port()), "--query-remoting-port", str(fixed_port())]
        command = [sys.executable, "-m", "tidemark.cli", "serve", "--data", str(data), *ports]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if "Ctrl-C" in line:
                return
        raise AssertionError("".join(self.lines))

    def children(self) -> list[psutil.Process]:
        """Return all its child processes."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self) -> int:
        """Wait for its end and return its exit status."""
        output, _ = self.process.communicate(timeout=60)
        self.lines += output.splitlines()
        return self.process.returncode


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Run it until the test ends."""
    served = Served(tmp_path / "data")
    yield served
    served.process.terminate()
    served.process.communicate(timeout=60)


def test_one_ctrl_c_stops_everything_cleanly(served: Served, tmp_path: Path) -> None:
    """Append and pull over REST work as printed; afterwards no process is left, and a new store is small."""
    topic = f"{served.url}/v1/topics/orders"
    message = {"body": "hello", "body_encoding": "utf8"}
    assert httpx.post(f"{topic}/messages", json={"messages": [message], "queue_id": 0}).status_code == 201
    page = httpx.get(f"{topic}/queues/0/messages?offset=0&body_encoding=utf8&wait_ms=10000").json()
    assert [message["body"] for message in page["messages"]] == ["hello"]

    children = served.children()
    served.process.send_signal(signal.SIGINT)
    assert served.end() == 0
    assert [line for line in served.lines if line.endswith("stopped")] == [
        "query stopped",
        "pipeline stopped",
        "writer stopped",
    ]
    assert not [child for child in children if _runs(child)]
    allocated = sum(path.stat().st_blocks * 512 for path in (tmp_path / "data").rglob("*"))
    assert allocated < 100_000_000


def test_a_service_that_exits_ends_serve_and_is_named(served: Served) -> None:
    """The exit status is 1."""
    children = served.children()
    (query,) = (child for child in children if _command(child)[-1:] == ["query"])
    query.kill()
    assert served.end() == 1
    assert "query ended by itself with exit status -9" in "\n".join(served.lines)
    assert not [child for child in children if _runs(child)]


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # ended meanwhile: Spark's launcher starts short-lived processes
        return []


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
