"""A query service that serves RocketMQ's clients from a store that the test writes, and one such client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.built_store import BuiltStore
from tests.query_server import ServedRemoting, serve_query_remoting
from tests.remoting_client import RemotingClient


@pytest.fixture
def served(built: BuiltStore) -> Iterator[ServedRemoting]:
    with serve_query_remoting(built.root, query_recheck_ms=20) as served:
        yield served


@pytest.fixture
def client(served: ServedRemoting) -> Iterator[RemotingClient]:
    with served.connect() as client:
        yield client
