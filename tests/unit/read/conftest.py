"""Fixtures of the tests of tidemark.read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_store import BuiltStore


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    """Return an empty store with a simple topic `orders` (2 queues) and a batch topic `batches`."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders", queues=2)
    store.topic("batches", batch=True)
    return store
