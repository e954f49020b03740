"""From exec until a first pull answers, with a store of 10 GB: after a clean stop, and after kill -9."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.fill import RECORD_OVERHEAD, fill
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Flush, Peer
from benchmarks.peers.rocketmq import RocketMQ

TOPIC = "start"
QUEUES = 4
LOG_BYTES = 10_000_000_000
BATCH, BODY_BYTES = 100, 1024
CLEAN, KILLED = KEYS = ("start_clean_s", "start_killed_s")


def start_rocketmq(folder: Path, scale: float) -> list[Figure]:
    """Killed right behind the last append, stopped when it serves again, started once more."""
    with RocketMQ(folder, Flush.ASYNC) as peer:
        peer.create_topic(TOPIC, QUEUES)
        fill(peer, TOPIC, _messages(scale), batch=BATCH, body=BODY_BYTES)
        return _starts(peer)


def start_kafka(folder: Path, scale: float) -> list[Figure]:
    """The same."""
    with Kafka(folder, Flush.ASYNC) as peer:
        peer.create_topic(TOPIC, QUEUES)
        peer.load("Fill", topic=TOPIC, messages=_messages(scale), queues=QUEUES, batch=BATCH, body=BODY_BYTES)
        return _starts(peer)


def _messages(scale: float) -> int:
    return int(LOG_BYTES * scale / (BODY_BYTES + RECORD_OVERHEAD))


def _starts(peer: Peer) -> list[Figure]:
    peer.kill()
    killed = seconds_to_first_pull(peer, TOPIC)
    peer.stop()
    clean = seconds_to_first_pull(peer, TOPIC)
    return [Figure(CLEAN, clean, "s", "page cache warm"), Figure(KILLED, killed, "s", "page cache warm")]


def seconds_to_first_pull(peer: Peer, topic: str) -> float:
    """Start *peer*, while a client that runs already asks for the first message of *topic* again and again."""
    client = peer.begin("FirstPull", topic=topic)
    client.next_line()
    peer.start()
    answered_ns: int = client.answer()["answered_ns"]
    return (answered_ns - peer.server.started_ns) / 1e9
