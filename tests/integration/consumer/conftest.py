"""A query service for the tests of this folder, read over each of the client's wires."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.integration.conftest import Served, serve_built


@pytest.fixture
def served(wire: str, tmp_path: Path) -> Iterator[Served]:
    """Return topics `orders` of four queues and `events` of one."""
    with serve_built(BuiltStore(tmp_path), query_remoting_listen="127.0.0.1:0") as served:
        yield served
