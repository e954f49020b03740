"""The query service as a process: its start, its address, its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore

pytestmark = pytest.mark.integration


@pytest.fixture
def process(built: BuiltStore) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "TIDEMARK_STORE_ROOT": str(built.root), "TIDEMARK_QUERY_LISTEN": "127.0.0.1:0"}
    started = subprocess.Popen(
        [sys.executable, "-m", "services.indexer", "query"], env=environment, stderr=subprocess.PIPE, text=True
    )
    yield started
    started.kill()
    started.communicate()


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    event: dict[str, Any] = json.loads(process.stderr.readline())
    assert event["event"] == "query_started"
    return str(event["address"])


def test_the_query_process_logs_its_address_and_stops_on_sigterm(process: subprocess.Popen[str]) -> None:
    """After SIGTERM waiting requests are answered, and the exit status is 0."""
    url = f"http://{address_of(process)}"
    answers: list[httpx.Response] = []
    waiting = threading.Thread(
        target=lambda: answers.append(
            httpx.get(f"{url}/v1/topics/orders/queues/0/messages?offset=10&wait_ms=30000", timeout=60)
        )
    )
    waiting.start()
    deadline = time.monotonic() + 10
    while not httpx.get(f"{url}/v1/status").json()["query"]["waiting_requests"]:
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    waiting.join()
    assert answers[0].json()["status"] == "OFFSET_OVERFLOW_ONE"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--query-listen", "nowhere"], 2),
        (["--log-level", "loud"], 2),
        (["--no-such-setting", "1"], 2),
        (["--help"], 0),
    ],
)
def test_invalid_settings_are_reported(arguments: list[str], status: int) -> None:
    """The exit status is 2 with a message, without a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "services.indexer.query", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_in_use_is_reported(process: subprocess.Popen[str], built: BuiltStore) -> None:
    """The exit status is 1."""
    taken = ["--query-listen", address_of(process), "--store-root", str(built.root)]
    done = subprocess.run(
        [sys.executable, "-m", "services.indexer.query", *taken],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert "query_failed" in done.stderr
    assert "Traceback" not in done.stderr


def test_requests_are_served_while_the_query_process_drains(built: BuiltStore) -> None:
    """After a signal it reports that it is not ready, answers for the configured time, and ends."""
    environment = {
        **os.environ,
        "TIDEMARK_STORE_ROOT": str(built.root),
        "TIDEMARK_QUERY_LISTEN": "127.0.0.1:0",
        "TIDEMARK_DRAIN_MS": "1500",
    }
    command = [sys.executable, "-m", "services.indexer", "query"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as draining:
        url = f"http://{address_of(draining)}"
        assert httpx.get(f"{url}/readyz").status_code == 200
        began = time.monotonic()
        draining.send_signal(signal.SIGTERM)
        while (ready := httpx.get(f"{url}/readyz")).status_code == 200:
            assert time.monotonic() < began + 1.5
        assert (ready.status_code, ready.json()["reason"]) == (503, "STORE_CLOSED")
        assert httpx.get(f"{url}/v1/topics/orders/queues/0/messages").json()["status"] == "FOUND"
        assert draining.wait(20) == 0
        assert time.monotonic() - began > 1.4
