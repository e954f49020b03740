"""Waiting until what is committed may be read."""

from __future__ import annotations

import time
from collections.abc import Callable

from tidemark.client.rest.query import Query

SETTLE_S = 10.0
_LOOK_S = 0.02


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Whether it came to hold in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def wait_until_visible(query: Query, timeout_s: float) -> bool:
    """Whether all that is committed now can be read, and looked up, in time."""
    wanted = query.watermark()["committed_offset"]
    return wait_until(lambda: query.watermark()["watermark"]["physical_offset"] >= wanted, timeout_s)
