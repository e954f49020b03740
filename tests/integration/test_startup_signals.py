"""A signal while a service is starting ends it with status 0 and one line, at any moment of the start."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.built_store import BuiltStore
from tests.fixed_ports import fixed_port
from tests.waiting import until

pytestmark = pytest.mark.integration

COMMANDS = {
    "writer": ["-m", "services.writer"],
    "pipeline": ["-m", "services.indexer", "pipeline"],
    "query": ["-m", "services.indexer", "query"],
    "attach": ["-m", "services.indexer", "attach"],
}
ENVIRONMENT = {
    "TIDEMARK_WRITER_LISTEN": "127.0.0.1:0",
    "TIDEMARK_WRITER_METRICS_LISTEN": "",
    "TIDEMARK_QUERY_LISTEN": "127.0.0.1:0",
    "TIDEMARK_PIPELINE_METRICS_LISTEN": "",
    "TIDEMARK_LOG_LEVEL": "info",
}
SIGNALS = [signal.SIGTERM, signal.SIGINT]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a service on a small store."""
    store = BuiltStore(tmp_path / "store")
    store.topic("t")
    store.append("t", b"x")
    store.publish()
    started: list[subprocess.Popen[str]] = []

    def run(service: str, **settings: str) -> subprocess.Popen[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
        process = subprocess.Popen(
            [sys.executable, *COMMANDS[service]],
            env={**inherited, **ENVIRONMENT, "TIDEMARK_STORE_ROOT": str(store.root), **settings},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()


def handles_signals(pid: int) -> bool:
    """Return True once the process has its handlers, of which that of SIGTERM is the last."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def javas_of(pid: int) -> list[int]:
    """Return the JVMs below a process."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True) if child.name() == "java"]
    return []


def events(text: str) -> list[str]:
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return [json.loads(line)["event"] for line in lines]


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("service", COMMANDS)
def test_signal_before_the_imports_are_done_ends_the_service(
    start: Start, service: str, number: signal.Signals
) -> None:
    process = start(service)
    until(lambda: handles_signals(process.pid))
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, events(said)) == (0, ["startup_interrupted"]), said
    assert json.loads(said)["signal"] == number.name


@pytest.mark.parametrize("delay_s", [0.2, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("service", ["writer", "query"])
def test_signal_at_any_moment_of_the_start_ends_the_service(start: Start, service: str, delay_s: float) -> None:
    """It prints the line of an interrupted start, or the last line of an orderly stop."""
    process = start(service)
    until(lambda: handles_signals(process.pid))
    time.sleep(delay_s)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert [event in ("startup_interrupted", f"{service}_stopped") for event in events(said)].count(True) == 1, said
    assert "Traceback" not in said


@pytest.mark.parametrize("number", SIGNALS)
def test_signal_while_the_jvm_starts_ends_pipeline_and_jvm(start: Start, number: signal.Signals) -> None:
    """The service stops in order: its understudy is at work."""
    process = start("pipeline")
    until(lambda: javas_of(process.pid))
    javas = javas_of(process.pid)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert events(said)[-1] == "pipeline_stopped", said
    until(lambda: not any(Path(f"/proc/{java}").exists() for java in javas))


@pytest.mark.parametrize("service", ["writer", "query"])
def test_a_service_stops_in_order_from_the_moment_in_which_its_port_is_open(start: Start, service: str) -> None:
    """Whoever waits for the port may stop it at once, as `store hand-back` does, which needs an orderly stop."""
    for _ in range(3):
        port = fixed_port()
        process = start(service, **{f"TIDEMARK_{service.upper()}_LISTEN": f"127.0.0.1:{port}"})
        until(partial(listens, port))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0
        assert [json.loads(line)["event"] for line in errors.splitlines()][-1] == f"{service}_stopped"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
