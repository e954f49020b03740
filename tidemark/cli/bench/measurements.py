"""Measurements of a benchmark: rates, and percentiles of all samples."""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple


class Latencies(NamedTuple):
    """Percentiles in milliseconds, by nearest rank: each is a measured value. With few samples, p999 is the maximum."""

    samples: int
    p50: float
    p99: float
    p999: float
    max: float

    @classmethod
    def of(cls, seconds: array[float]) -> Latencies:
        """Return the percentiles of all *seconds*, of which there is at least one."""
        ordered = sorted(seconds)

        def rank(share: float) -> float:
            return ordered[math.ceil(share * len(ordered)) - 1] * 1000

        return cls(len(ordered), rank(0.5), rank(0.99), rank(0.999), ordered[-1] * 1000)


class Rate(NamedTuple):
    """A number of messages in a time."""

    messages: int
    seconds: float
    messages_per_s: float
    bytes_per_s: float

    @classmethod
    def of(cls, messages: int, seconds: float, *, size_bytes: int) -> Rate:
        """Return the rate of *messages* with bodies of *size_bytes*."""
        per_s = messages / max(seconds, 1e-9)
        return cls(messages, seconds, per_s, per_s * size_bytes)


class BenchResult(NamedTuple):
    """The result of a run. visible: None if no message became visible in time."""

    flush_mode: str
    send: Rate
    send_latency_ms: Latencies
    visible_latency_ms: Latencies | None
    read_back: Rate
