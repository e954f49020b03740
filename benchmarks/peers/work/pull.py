"""Pulls of one consumer from four queues that were just written, from the first message to the last, repeatedly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.fill import fill
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Flush
from benchmarks.peers.rocketmq import RocketMQ
from benchmarks.peers.work.clock import clock

TOPIC = "pull"
QUEUES = 4
MESSAGES = 1_000_000
DEFAULT_MOST = 32  # RocketMQ's default limit of messages in an answer, regardless of the request
LARGE_MOST = 4096
LARGE: Mapping[str, object] = {  # answers of up to 4 MiB
    "maxTransferCountOnMessageInMemory": LARGE_MOST,
    "maxTransferBytesOnMessageInMemory": 4 << 20,
}


def pull_rocketmq(
    key: str, folder: Path, scale: float, *, batch: int, body: int, batch_queue: bool = False, large: bool = False
) -> list[Figure]:
    """Return messages per second. large: with the broker's limits of an answer raised to 4 MiB."""
    with RocketMQ(folder, Flush.ASYNC, settings=LARGE if large else None) as peer:
        peer.create_topics(TOPIC, QUEUES, batch=batch_queue)
        fill(peer, TOPIC, int(MESSAGES * scale), batch=batch, body=body)
        answer = peer.load("Pull", topic=TOPIC, most=LARGE_MOST if large else DEFAULT_MOST, **clock(scale))
    return [Figure(key, answer["messages_per_s"], "msg/s", f"{answer['mb_per_s']:,.0f} MB/s")]


def pull_kafka(key: str, folder: Path, scale: float, *, batch: int, body: int) -> list[Figure]:
    """Return records per second."""
    with Kafka(folder, Flush.ASYNC) as peer:
        peer.create_topic(TOPIC, QUEUES)
        peer.load("Fill", topic=TOPIC, messages=int(MESSAGES * scale), queues=QUEUES, batch=batch, body=body)
        answer = peer.load("Pull", topic=TOPIC, **clock(scale))
    return [Figure(key, answer["messages_per_s"], "msg/s", f"{answer['mb_per_s']:,.0f} MB/s")]
