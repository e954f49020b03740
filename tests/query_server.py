"""A query service over real HTTP in a thread of the test's process."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx

from services.indexer.query.config import QuerySettings
from services.indexer.query.remoting.composition import QueryRemoting
from services.indexer.query.server import QueryServer
from services.indexer.query.state.service_state import ServiceState
from tests.remoting_client import RemotingClient


@contextlib.contextmanager
def serve_query(root: Path, *, port: int = 0, **settings: Any) -> Iterator[httpx.Client]:
    """Serve the store at *root* on *port* (0: a free one) until the block ends, and yield a client of it."""
    with (
        _served(root, port, settings) as bound,
        httpx.Client(base_url=f"http://127.0.0.1:{bound}", timeout=60) as client,
    ):
        yield client


@contextlib.contextmanager
def serve_query_over_tls(root: Path, trust: ssl.SSLContext, **settings: Any) -> Iterator[httpx.Client]:
    """Like serve_query, with the certificate of *settings* and a client that trusts *trust*."""
    with (
        _served(root, 0, settings) as bound,
        httpx.Client(base_url=f"https://127.0.0.1:{bound}", timeout=60, verify=trust) as client,
    ):
        yield client


class ServedRemoting(NamedTuple):
    """A service that also serves RocketMQ's clients. http: a client of its REST API; port: for RocketMQ's clients."""

    http: httpx.Client
    port: int
    state: ServiceState

    def connect(self, **more: Any) -> RemotingClient:
        """Return a connection. more: of RemotingClient."""
        return RemotingClient(self.port, **more)


@contextlib.contextmanager
def serve_query_remoting(
    root: Path, *, trust: ssl.SSLContext | None = None, **settings: Any
) -> Iterator[ServedRemoting]:
    """Like serve_query, with the remoting protocol on a free port. trust: for HTTPS."""
    given = {"query_remoting_listen": "127.0.0.1:0", **settings}
    with _server(root, 0, given) as server:
        url = f"{'http' if trust is None else 'https'}://127.0.0.1:{_port(server)}"
        remoting = cast(QueryRemoting, server._state.remoting)
        with httpx.Client(base_url=url, timeout=60, verify=True if trust is None else trust) as http:
            yield ServedRemoting(http, remoting.server.port, server._state)


@contextlib.contextmanager
def _served(root: Path, port: int, settings: dict[str, Any]) -> Iterator[int]:
    """Serve, and yield the port."""
    with _server(root, port, settings) as server:
        yield _port(server)


def _port(server: QueryServer) -> int:
    return int(server.servers[0].sockets[0].getsockname()[1])


@contextlib.contextmanager
def _server(root: Path, port: int, settings: dict[str, Any]) -> Iterator[QueryServer]:
    server = QueryServer(QuerySettings(store_root=root, query_listen=f"127.0.0.1:{port}", **settings))
    thread = threading.Thread(target=server.run, name="query-server")
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the query server did not start"
            time.sleep(0.005)
        yield server
    finally:
        server.stop()
        thread.join()
