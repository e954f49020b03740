"""Figure: one measured value of a run of RocketMQ, Kafka or Tidemark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

OURS = "tidemark"  # name of the system, like the names of the products
OURS_GRPC = "tidemark-grpc"  # the same over gRPC and HTTP, in rows of its Python client
BARE = "bare"  # the least that a log in Python does, in the same rows
NO_PEERS = (OURS, OURS_GRPC, BARE)


class Figure(NamedTuple):
    """One figure of one run. key: as in goals.py; note: how it was measured, or further observations."""

    key: str
    value: float
    unit: str
    note: str = ""


class OurRun(NamedTuple):
    """A run of Tidemark that is no benchmark of the catalog. run: (a folder of its own, scale) → a figure a key."""

    keys: tuple[str, ...]
    run: Callable[[Path, float], list[Figure]]
