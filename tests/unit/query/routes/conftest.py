"""Fixtures of the routes' tests: one store, and the application that serves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.unit.query.served_app import ServedApp

MESSAGES = 6


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    """The topic `orders` of two queues, with m0 to m5 in queue 0, and `batches` with an inner batch of b0 to b2."""
    store = BuiltStore(tmp_path / "store")
    store.topic("orders", queues=2)
    store.topic("batches", batch=True)
    for number in range(MESSAGES):
        named = {"TAGS": "AB"[number % 2], "KEYS": f"k{number} all", "UNIQ_KEY": f"u{number}"}
        store.append("orders", b"m%d" % number, named)
    store.append_batch("batches", [(b"b0", {"TAGS": "A"}, 0), (b"b1", {}, 0), (b"b2", {}, 0)])
    store.publish()
    return store


@pytest.fixture
def service(built: BuiltStore) -> Iterator[ServedApp]:
    with ServedApp(built, query_recheck_ms=20, index_slots=built.slots, index_entries=built.entries) as served:
        yield served
