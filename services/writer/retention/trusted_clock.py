"""TrustedClock: the wall clock time by which retention decides the age of records.

A wall clock that is set ahead makes every record old at once. Therefore a forward jump relative to CLOCK_BOOTTIME,
which cannot be set, is ignored for `grace_ms`: the operator may set the clock back. A backward jump counts at once,
because it only keeps more records. A process that starts while the clock is wrong cannot detect that.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

_TOLERATED_MS = 60_000  # per call of now_ms: clocks are slewed, and calls may be late
log = structlog.get_logger()


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _running_ms() -> int:
    """Return the time since the machine started, including suspended time."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class TrustedClock:
    """A wall clock for one thread. grace_ms: time for which a forward jump must last before it counts."""

    def __init__(
        self,
        *,
        grace_ms: int,
        wall_ms: Callable[[], int] = _wall_ms,
        running_ms: Callable[[], int] = _running_ms,
    ) -> None:
        self._grace_ms = grace_ms
        self._wall_ms, self._running_ms = wall_ms, running_ms
        self._difference_ms = wall_ms() - running_ms()  # the accepted difference of the two clocks
        self._ahead_since_ms: int | None = None

    def now_ms(self) -> int:
        """Return epoch milliseconds. Call it regularly: changes between two calls count as one jump."""
        running_ms = self._running_ms()
        difference_ms = self._wall_ms() - running_ms
        ahead_ms = difference_ms - self._difference_ms
        if ahead_ms <= _TOLERATED_MS:
            self._believe(difference_ms)
        elif self._ahead_since_ms is None:
            self._ahead_since_ms = running_ms
            log.warning("clock_set_ahead", ahead_ms=ahead_ms, believed_after_ms=self._grace_ms)
        if self._ahead_since_ms is not None and running_ms - self._ahead_since_ms >= self._grace_ms:
            self._believe(difference_ms)
        return running_ms + self._difference_ms

    def _believe(self, difference_ms: int) -> None:
        self._difference_ms, self._ahead_since_ms = difference_ms, None
