"""Fixtures for many suites: one running stack that no test stops, and written stores with a service."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.built_store import BuiltStore
from tests.integration.several_stores import Pair
from tests.query_server import serve_query
from tidemark.local.local_stack import LocalStack
from tidemark.testing.server import TidemarkServer

QUEUES = 4
WITHOUT_SPARK = {"TIDEMARK_PIPELINE": "plain"}  # for tests of the other services: starts sooner, leaves them the CPU


class Served(NamedTuple):
    """A store and its service."""

    store: BuiltStore
    url: str

    def put(self, *bodies: bytes, queue_id: int = 0, topic: str = "orders", **entries: str) -> None:
        """Write visible messages."""
        for body in bodies:
            self.store.append(topic, body, entries, queue_id=queue_id)
        self.store.publish()


@contextlib.contextmanager
def serve_built(store: BuiltStore, **settings: Any) -> Iterator[Served]:
    """Serve *store*, in which topics `orders` of four queues and `events` of one are made."""
    store.topic("orders", queues=QUEUES)
    store.topic("events", queues=1)
    store.publish()
    with serve_query(store.root, **settings) as client:
        yield Served(store, str(client.base_url))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Return topics `orders` of four queues and `events` of one."""
    with serve_built(BuiltStore(tmp_path)) as served:
        yield served


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    """Run writer, pipeline and query; each test uses its own topics and groups."""
    with LocalStack(tmp_path_factory.mktemp("stack") / "data", environment=WITHOUT_SPARK) as stack:
        yield stack


@pytest.fixture(scope="module")
def two_servers() -> Iterator[list[TidemarkServer]]:
    with TidemarkServer() as first, TidemarkServer() as second:
        yield [first, second]


@pytest.fixture
def pair(two_servers: list[TidemarkServer]) -> Pair:
    return Pair(two_servers)
