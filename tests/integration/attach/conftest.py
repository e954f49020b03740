"""Fixtures: a broker's store, written record by record, and Tidemark attached to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built_store import BuiltStore

from .attached import Attached, attach


@pytest.fixture
def broker(tmp_path: Path) -> BuiltStore:
    """Return topic `orders` (2 queues) with m0 … m9 in queue 0, and a batch topic `packed` with an inner batch."""
    store = BuiltStore(tmp_path / "store", marked=False)
    store.topic("orders", queues=2)
    store.topic("packed", batch=True)
    for number in range(10):
        store.append("orders", f"m{number}".encode(), {"KEYS": f"k{number}"})
    store.append_batch("packed", [(b"b0", {}, 0), (b"b1", {}, 0), (b"b2", {}, 0)])
    return store


@pytest.fixture
def attached(broker: BuiltStore, tmp_path: Path) -> Iterator[Attached]:
    with attach(broker.root, tmp_path / "state") as attached:
        yield attached
