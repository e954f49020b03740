"""Ages in the response of GET /v1/status."""

from __future__ import annotations

import time

import pytest

from services.indexer.query.routes.status_document import published_age_ms
from tidemark.read.watermark import Watermark


@pytest.mark.parametrize(("ago_ms", "least", "most"), [(5_000, 5_000, 60_000), (-3_600_000, 0, 0)])
def test_the_publication_age_is_never_negative(ago_ms: int, least: int, most: int) -> None:
    """A time in the future gives no negative age: the clock was set back."""
    published_ms = time.time_ns() // 1_000_000 - ago_ms
    age_ms = published_age_ms(Watermark(term=1, physical_offset=0, published_ms=published_ms, committed_offset=0))
    assert age_ms is not None
    assert least <= age_ms <= most
