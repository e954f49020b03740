"""Fills a RocketMQ broker with a log of a given size, and checks that its queues contain all messages."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.peers.rocketmq import RocketMQ
from tidemark.format.index_layout import HEADER

RECORD_OVERHEAD = 150  # approximate bytes of a record besides its body: head, hosts, a short topic, UNIQ_KEY


class Filled(NamedTuple):
    """The messages that were sent. samples_file: has *samples* lines with a key and an offset message id each."""

    topic: str
    topics: int
    messages: int
    samples: int
    samples_file: Path


def fill(
    peer: RocketMQ, topic: str, messages: int, *, batch: int, body: int, topics: int = 1, keyed_samples: int = 0
) -> Filled:
    """Send *messages*, rounded up to a whole batch.

    keyed_samples: above 0, each message has a key, and this many keys are recorded. The client sets a UNIQ_KEY on every
    message in any case, but the broker appends that of the batch, which takes precedence.
    """
    path = peer.folder / f"{topic}.samples"
    sizes = {"messages": messages, "batch": batch, "body": body}
    keys = {"keyed": int(keyed_samples > 0), "samples": keyed_samples, "samples_file": path}
    answer = peer.load("Fill", topic=topic, topics=topics, **sizes, **keys)
    return Filled(topic, topics, answer["messages"], answer["samples"], path)


def require_dispatched(peer: RocketMQ, filled: Filled) -> int:
    """Block until the dispatch ends, and return the bytes of the log.

    Raises ValueError unless the queues contain exactly the messages of *filled*.
    """
    answer = peer.load("AwaitDispatch", topic=filled.topic, topics=filled.topics)
    if answer["messages"] != filled.messages:
        raise ValueError(f"the queues have {answer['messages']:,} messages, expected {filled.messages:,}")
    log_bytes: int = answer["log_bytes"]
    return log_bytes


def require_indexed(peer: RocketMQ, filled: Filled) -> None:
    """Raise ValueError unless the key index has an entry for each message that has a key."""
    headers = [np.fromfile(path, HEADER, 1) for path in (peer.store / "index").iterdir()]
    entries = sum(int(header["index_count"][0]) - 1 for header in headers)
    if entries != filled.messages:
        raise ValueError(f"the key index has {entries:,} entries, too few for {filled.messages:,} messages")
