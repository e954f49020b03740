"""The rows python_*: workload, flush mode and compared clients of each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.figures import Figure, OurRun
from benchmarks.peers.peer import Flush
from benchmarks.peers.python.load import BATCHING, CONSUME, CONSUME_TABLE, LATENCY, SEND, Load
from benchmarks.peers.python.measure import measure
from benchmarks.peers.python.systems import (
    AIOKAFKA,
    BARE_PYTHON,
    CONFLUENT,
    NATS,
    PEERS,
    REDIS,
    TIDEMARK,
    TIDEMARK_GRPC,
    System,
)
from benchmarks.peers.work.clock import clock

_CONSUMED = 250_000


class Row(NamedTuple):
    """A row. rate: messages per second, for latencies."""

    key: str
    workload: str
    flush: Flush
    peers: tuple[System, ...]
    rate: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys of its figures."""
        figures = (f"{self.key}_p50", f"{self.key}_p99") if self.workload == LATENCY else (self.key,)
        return (*figures, f"{self.key}_cpu")

    @property
    def systems(self) -> tuple[System, ...]:
        """Return all its systems, Tidemark's first."""
        bare = () if self.workload in (CONSUME, CONSUME_TABLE) else (BARE_PYTHON,)
        return (TIDEMARK, TIDEMARK_GRPC, *self.peers, *bare)

    def load(self, scale: float) -> Load:
        """Return the amounts for *scale*."""
        times = clock(scale)
        return Load(
            self.workload,
            times["warm_s"],
            times["measured_s"],
            int(_CONSUMED * min(scale, 1.0)) if self.workload in (CONSUME, CONSUME_TABLE) else 0,
            self.rate,
        )


ROWS = (
    Row("python_send_sync", SEND, Flush.SYNC, (CONFLUENT, NATS, REDIS)),
    Row("python_send_async", SEND, Flush.ASYNC, PEERS),
    Row("python_batching_sync", BATCHING, Flush.SYNC, PEERS),
    Row("python_batching_async", BATCHING, Flush.ASYNC, PEERS),
    Row("python_consume", CONSUME, Flush.ASYNC, (CONFLUENT, AIOKAFKA, REDIS)),
    Row("python_consume_table", CONSUME_TABLE, Flush.ASYNC, (CONFLUENT,)),
    Row("python_latency_200", LATENCY, Flush.ASYNC, PEERS, 200),
    Row("python_latency_5000", LATENCY, Flush.ASYNC, PEERS, 5000),
)


def run_of(row: Row, system: System) -> Callable[[Path, float], list[Figure]]:
    """Return the run of *row* with *system*."""
    return partial(_run, row, system)


def _run(row: Row, system: System, folder: Path, scale: float) -> list[Figure]:
    return measure(system, row.key, folder, flush=row.flush, load=row.load(scale))


OURS_BY_NAME = {row.key: OurRun(row.keys, run_of(row, TIDEMARK)) for row in ROWS}
THEIRS = [(system, row.keys, run_of(row, system)) for row in ROWS for system in row.systems[1:]]
