"""A store of two topics behind a real query service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query

QUEUES = 4


class Served(NamedTuple):
    """A store, and where it is served."""

    store: BuiltStore
    url: str

    def put(self, *bodies: bytes, queue_id: int = 0, topic: str = "orders", **entries: str) -> None:
        """Visible messages."""
        for body in bodies:
            self.store.append(topic, body, entries, queue_id=queue_id)
        self.store.publish()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    store = BuiltStore(tmp_path)
    store.topic("orders", queues=QUEUES)
    store.topic("events", queues=1)
    store.publish()
    with serve_query(tmp_path) as client:
        yield Served(store, str(client.base_url))
