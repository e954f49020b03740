"""The running server: its start, and how it stops."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from services.indexer.query import server
from services.indexer.query.config import QuerySettings
from services.indexer.query.server import QueryServer
from tests.built_store import BuiltStore
from tests.waiting import until
from tidemark.errors import StoreTooNewError

WAIT_S = 30.0
LONG_MS = 60_000


class Running(QueryServer):
    """A server in a thread, and a client of it. Signals arrive on its event loop, as in the main thread."""

    def __init__(self, root: Path, **settings: Any) -> None:
        super().__init__(
            QuerySettings(store_root=root, query_listen="127.0.0.1:0", query_max_wait_ms=LONG_MS, **settings)
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        until(lambda: self.started)
        port = self.servers[0].sockets[0].getsockname()[1]
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=WAIT_S)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)

    def signal(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self.handle_exit, signal.SIGTERM, None)

    def has_ended(self) -> bool:
        return not self.thread.is_alive()

    def end(self) -> None:
        assert self._loop is not None
        self.client.close()
        if not self.has_ended():
            self._loop.call_soon_threadsafe(self.stop)
        self.thread.join(WAIT_S)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    built = BuiltStore(tmp_path)
    built.topic("orders")
    built.append("orders", b"x")
    built.publish()
    return built.root


@pytest.fixture
def start(root: Path) -> Iterator[Callable[..., Running]]:
    servers: list[Running] = []

    def run(**settings: Any) -> Running:
        servers.append(Running(root, **settings))
        return servers[-1]

    yield run
    for made in servers:
        made.end()


def test_the_event_of_the_start_has_the_bound_address(start: Callable[..., Running], root: Path) -> None:
    """With port 0, an operator or a test learns the port from it."""
    with capture_logs() as events:
        running = start()
    (started,) = (event for event in events if event["event"] == "query_started")
    assert started["address"] == f"127.0.0.1:{running.client.base_url.port}"
    assert (started["tls"], started["store_root"]) == (False, str(root))


def test_at_a_stop_a_waiting_request_gets_the_messages_that_there_are(start: Callable[..., Running]) -> None:
    running = start()
    answers: list[httpx.Response] = []
    path = f"/v1/topics/orders/queues/0/messages?offset=1&wait_ms={LONG_MS}"
    waiting = threading.Thread(target=lambda: answers.append(running.client.get(path)), daemon=True)
    waiting.start()
    until(lambda: running._state.watcher.waiting)
    running.signal()
    waiting.join(WAIT_S)
    (answer,) = answers
    assert (answer.status_code, answer.json()["messages"], answer.json()["next_offset"]) == (200, [], 1)
    until(running.has_ended)


def test_a_draining_server_reports_not_ready_and_serves_until_a_second_signal(start: Callable[..., Running]) -> None:
    """A load balancer needs the time to send requests elsewhere."""
    running = start(drain_ms=LONG_MS)
    assert running.client.get("/readyz").status_code == 200
    running.signal()
    until(lambda: running.client.get("/readyz").status_code == 503)
    assert running.client.get("/v1/watermark").status_code == 200
    assert not running.has_ended()
    running.signal()
    until(running.has_ended)


def test_a_draining_server_stops_when_its_time_is_over(start: Callable[..., Running]) -> None:
    running = start(drain_ms=1)
    running.signal()
    until(running.has_ended)


def test_a_store_of_a_newer_program_is_refused_before_anything_is_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("the store is opened")

    monkeypatch.setattr(server, "limit_memory", fail)
    monkeypatch.setattr(server, "QueryServer", fail)
    version = {"version": {"major": 2, "minor": 0}, "written_by": "tidemark of the future"}
    (root / "tidemark" / "format").write_text(json.dumps(version))
    with pytest.raises(StoreTooNewError):
        server.serve(QuerySettings(store_root=root))
