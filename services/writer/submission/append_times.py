"""AppendTimes: measures appends from request to answer, and logs a warning for slow ones."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from tidemark.metrics.buckets import Buckets

from ..batch.batch import Batch

log = structlog.get_logger()

_QUIET_S = 1.0  # between two warnings: under load many appends wait at once


class AppendTimes:
    """Measures appends on the event loop; any thread may read `seconds`. warn_ms: 0 for no warnings."""

    def __init__(self, warn_ms: int) -> None:
        self.seconds = Buckets("tidemark_writer_append_seconds")
        self._warn_s = warn_ms / 1000 if warn_ms else float("inf")
        self._warned_s = float("-inf")
        self._waited = 0  # appends since the last warning
        self._longest_s = 0.0

    def measuring(self, answer: Callable[[Batch], None]) -> Callable[[Batch], None]:
        """Return a function that observes the time since this call and then calls *answer*."""
        began = time.perf_counter()

        def measure_and_answer(batch: Batch) -> None:
            seconds = time.perf_counter() - began
            self.seconds.observe(seconds)
            if seconds > self._warn_s:
                self._warn(batch, seconds)
            answer(batch)

        return measure_and_answer

    def _warn(self, batch: Batch, seconds: float) -> None:
        self._waited += 1
        self._longest_s = max(self._longest_s, seconds)
        now = time.monotonic()
        if now - self._warned_s < _QUIET_S:
            return
        log.warning(
            "append_waited",
            waited_ms=round(seconds * 1000),
            topic=batch.key.topic,
            messages=batch.count,
            appends=self._waited,
            longest_ms=round(self._longest_s * 1000),
        )
        self._warned_s, self._waited, self._longest_s = now, 0, 0.0
