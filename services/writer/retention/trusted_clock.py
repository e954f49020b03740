"""AgeClock: what time it is, for deciding what is old enough to be deleted.

A wall clock that is set ahead makes every record old at once. So what it runs ahead of the machine's own clock, which
nobody sets, is not believed for a while: somebody may set it back, or say that it was right. What it is set back is
believed at once: that only keeps more. A process that starts while the clock is wrong cannot know.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

_TOLERATED_MS = 60_000  # between two looks: a clock is slewed, and a look may be late
log = structlog.get_logger()


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _running_ms() -> int:
    """Since the machine started; goes on while it sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class AgeClock:
    """One thread's. grace_ms: how long a clock that was set ahead must stay so to be believed."""

    def __init__(
        self,
        *,
        grace_ms: int,
        wall_ms: Callable[[], int] = _wall_ms,
        running_ms: Callable[[], int] = _running_ms,
    ) -> None:
        self._grace_ms = grace_ms
        self._wall_ms, self._running_ms = wall_ms, running_ms
        self._difference_ms = wall_ms() - running_ms()  # of the two clocks, as far as it is believed
        self._ahead_since_ms: int | None = None

    def now_ms(self) -> int:
        """Epoch milliseconds. To be asked every now and then: what happens in between counts as one step."""
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
