"""How long sends avoid a writer that answered late (RocketMQ 5.1.4's latency fault table; docs/format.md §15)."""

from __future__ import annotations

import bisect

_LATENCY_S = (0.05, 0.1, 0.55, 1.8, 3.0, 5.0, 15.0)
_AVOIDED_S = (0.0, 0.0, 2.0, 5.0, 6.0, 10.0, 30.0)
ISOLATION_S = 10.0  # the latency that a send without any answer counts as


def avoided_s(latency_s: float) -> float:
    """Seconds for which a writer is left alone after an answer that took *latency_s*."""
    number = bisect.bisect_right(_LATENCY_S, latency_s) - 1
    return _AVOIDED_S[number] if number >= 0 else 0.0


class Latency:
    """Of one writer. Times are time.monotonic() seconds; written by one thread at a time, read by any."""

    def __init__(self) -> None:
        self._avoided_until = 0.0

    def observe(self, latency_s: float, now: float) -> None:
        """Note an answer; a fast one ends an earlier wait, as in the peer."""
        self._avoided_until = now + avoided_s(latency_s)

    def is_avoided(self, now: float, *, waiting_s: float) -> bool:
        """Whether others are better now. waiting_s: what the oldest send has been waiting for so far: a writer that
        hangs is seen before its first late answer."""
        return now < self._avoided_until or avoided_s(waiting_s) > 0
