from __future__ import annotations

import gc
from collections.abc import Iterator

import pyarrow as pa
import pytest

from services.indexer.query.memory_limits import limit_memory


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Other tests of this process have the pool and the thresholds that they began with."""
    pool, thresholds = pa.default_memory_pool(), gc.get_threshold()
    yield
    pa.set_memory_pool(pool)
    gc.set_threshold(*thresholds)


def test_arrow_buffers_come_from_malloc() -> None:
    """Its own pools would keep freed memory."""
    limit_memory()
    assert pa.default_memory_pool().backend_name == "system"


def test_the_gc_threshold_is_raised_and_gc_stays_enabled() -> None:
    """A large answer makes tens of thousands of objects without a cycle."""
    limit_memory()
    assert gc.get_threshold()[0] >= 32_768
    assert gc.isenabled()
