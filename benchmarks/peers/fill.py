"""A log of a given size on a RocketMQ broker, and the proof that its queues hold all of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from benchmarks.peers.rocketmq import RocketMQ

RECORD_OVERHEAD = 150  # bytes of a record beside its body, about: head, hosts, a short topic, UNIQ_KEY


class Filled(NamedTuple):
    """What was given to a topic. samples: the file with a unique key and an offset message id in each line."""

    topic: str
    messages: int
    samples: Path


def fill(peer: RocketMQ, topic: str, messages: int, *, batch: int, body: int, samples: int = 0) -> Filled:
    """Give *messages* (rounded up to a whole batch) to *topic*, and note the keys of *samples* of them."""
    path = peer.folder / f"{topic}.samples"
    answer = peer.load(
        "Fill", topic=topic, messages=messages, batch=batch, body=body, samples=samples, samples_file=path
    )
    return Filled(topic, answer["messages"], path)


def require_dispatched(peer: RocketMQ, filled: Filled) -> int:
    """Wait until the queues hold every message; the bytes of the log. ValueError when they hold something else."""
    answer = peer.load("AwaitDispatch", topic=filled.topic, topics=1)
    if answer["messages"] != filled.messages:
        raise ValueError(f"the queues hold {answer['messages']:,} of {filled.messages:,} messages")
    log_bytes: int = answer["log_bytes"]
    return log_bytes


def require_found(peer: RocketMQ, filled: Filled, *, lookups: int) -> None:
    """That the key index finds *lookups* of the samples; or PeerFailedError."""
    settings = {"by": "key", "samples_file": filled.samples, "warm_ups": 0, "hot": 1, "skip": 0, "lookups": lookups}
    peer.load("Lookup", topic=filled.topic, **settings)
