"""Fixtures of the query service's integration tests: real HTTP over a store that the test writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.query_server import serve_query


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    """Return topic `orders` (2 queues) with m0 … m9 in queue 0, and a batch topic `batches` with an inner batch."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders", queues=2)
    store.topic("batches", batch=True)
    for number in range(10):
        store.append("orders", f"m{number}".encode(), {"TAGS": "AB"[number % 2], "KEYS": f"k{number}"})
    store.append_batch("batches", [(b"b0", {"TAGS": "A"}, 0), (b"b1", {"TAGS": "B"}, 0), (b"b2", {}, 0)])
    store.publish()
    return store


@pytest.fixture
def client(built: BuiltStore) -> Iterator[httpx.Client]:
    with serve_query(built.root) as client:
        yield client
