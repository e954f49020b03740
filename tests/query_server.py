"""A query service over real HTTP in a thread of the test's process."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from services.indexer.query.config import QuerySettings
from services.indexer.query.server import QueryServer


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


@contextlib.contextmanager
def _served(root: Path, port: int, settings: dict[str, Any]) -> Iterator[int]:
    """Serve, and yield the port."""
    server = QueryServer(QuerySettings(store_root=root, query_listen=f"127.0.0.1:{port}", **settings))
    thread = threading.Thread(target=server.run, name="query-server")
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the query server did not start"
            time.sleep(0.005)
        yield int(server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.stop()
        thread.join()
