"""Waiting until committed messages are visible."""

from __future__ import annotations

import time
from collections.abc import Callable

from tidemark.client.rest.query import Query

SETTLE_S = 10.0
CATCH_UP_S = 60.0  # for a member of a group that is behind another one
_LOOK_S = 0.02


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Return True if *condition* became true within the timeout."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def wait_until_visible(query: Query, timeout_s: float) -> bool:
    """Return True if everything that is committed now became visible, also for lookups, within the timeout."""
    wanted = query.watermark()["committed_offset"]
    return wait_until(lambda: query.watermark()["watermark"]["physical_offset"] >= wanted, timeout_s)
