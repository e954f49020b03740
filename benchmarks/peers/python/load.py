"""Load: the amounts of one run, and the workloads; the parent of a client's process and the process share them."""

from __future__ import annotations

from typing import NamedTuple

SEND, BATCHING, CONSUME, CONSUME_TABLE, LATENCY = "send", "batching", "consume", "consume_table", "latency"
TOPIC = "bench"
BODY_BYTES = 1024


class Load(NamedTuple):
    """The load of one run.

    workload    one of the constants above
    warm_s      seconds that do not count
    measured_s  seconds that count
    messages    for consume: messages in the topic, which is read repeatedly from the first to the last
    rate        for latency: messages per second
    """

    workload: str
    warm_s: float
    measured_s: float
    messages: int = 0
    rate: int = 0

    @property
    def is_small(self) -> bool:
        """Return True if each message must be sent without waiting for others."""
        return self.workload in (SEND, LATENCY)
