"""A log of a given size on a RocketMQ broker, and the proof that its queues hold all of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.peers.rocketmq import RocketMQ
from tidemark.format.index_file import HEADER

RECORD_OVERHEAD = 150  # bytes of a record beside its body, about: head, hosts, a short topic, UNIQ_KEY


class Filled(NamedTuple):
    """What was given. samples_file: a key and an offset message id in each of *samples* lines."""

    topic: str
    topics: int
    messages: int
    samples: int
    samples_file: Path


def fill(
    peer: RocketMQ, topic: str, messages: int, *, batch: int, body: int, topics: int = 1, keyed_samples: int = 0
) -> Filled:
    """Give *messages* (rounded up to a whole batch). keyed_samples: above 0, each has a key, and so many are noted.

    The client gives every message a UNIQ_KEY anyhow, but the broker writes the batch's own behind it, which counts.
    """
    path = peer.folder / f"{topic}.samples"
    sizes = {"messages": messages, "batch": batch, "body": body}
    keys = {"keyed": int(keyed_samples > 0), "samples": keyed_samples, "samples_file": path}
    answer = peer.load("Fill", topic=topic, topics=topics, **sizes, **keys)
    return Filled(topic, topics, answer["messages"], answer["samples"], path)


def require_dispatched(peer: RocketMQ, filled: Filled) -> int:
    """Wait until the queues hold every message; the bytes of the log. ValueError when they hold something else."""
    answer = peer.load("AwaitDispatch", topic=filled.topic, topics=filled.topics)
    if answer["messages"] != filled.messages:
        raise ValueError(f"the queues hold {answer['messages']:,} of {filled.messages:,} messages")
    log_bytes: int = answer["log_bytes"]
    return log_bytes


def require_indexed(peer: RocketMQ, filled: Filled) -> None:
    """That the key index has an entry for each message that has one key; ValueError when it has not."""
    headers = [np.fromfile(path, HEADER, 1) for path in (peer.store / "index").iterdir()]
    entries = sum(int(header["index_count"][0]) - 1 for header in headers)
    if entries != filled.messages:
        raise ValueError(f"the key index has {entries:,} entries for {filled.messages:,} messages")
