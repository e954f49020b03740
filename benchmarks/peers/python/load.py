"""Load: the amounts of one run, and the workloads; the parent of a client's process and the process share them."""

from __future__ import annotations

from typing import NamedTuple

SEND, BATCHING, CONSUME, CONSUME_TABLE, LATENCY = "send", "batching", "consume", "consume_table", "latency"
TOPIC = "bench"
BODY_BYTES = 1024
HIGH_RATE = 1000  # messages per second


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
    def may_batch(self) -> bool:
        """Return True if messages may share a batch. Clients without batches cannot send at a high rate."""
        return self.workload != SEND and (self.workload != LATENCY or self.rate >= HIGH_RATE)
