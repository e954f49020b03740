"""Latency: how long sends avoid a writer that answered late (RocketMQ 5.1.4's latency table; docs/format.md §15)."""

from __future__ import annotations

import bisect

_LATENCY_S = (0.05, 0.1, 0.55, 1.8, 3.0, 5.0, 15.0)
_AVOIDED_S = (0.0, 0.0, 2.0, 5.0, 6.0, 10.0, 30.0)
ISOLATION_S = 10.0  # latency to record for a send without an answer


def avoided_s(latency_s: float) -> float:
    """Return the seconds for which to avoid a writer after an answer that took *latency_s*."""
    number = bisect.bisect_right(_LATENCY_S, latency_s) - 1
    return _AVOIDED_S[number] if number >= 0 else 0.0


class Latency:
    """The latency state of one writer, in time.monotonic() seconds. One thread writes at a time; any thread reads."""

    def __init__(self) -> None:
        self._avoided_until = 0.0

    def observe(self, latency_s: float, now: float) -> None:
        """Record an answer; a fast one ends an earlier avoidance, as in RocketMQ."""
        self._avoided_until = now + avoided_s(latency_s)

    def is_avoided(self, now: float, *, waiting_s: float) -> bool:
        """Return True if sends should avoid this writer now.

        waiting_s: age of the oldest unanswered send, by which a hanging writer is detected before its first late answer
        """
        return now < self._avoided_until or avoided_s(waiting_s) > 0
