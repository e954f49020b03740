"""The time from exec to the first answered pull, with a store of 10 GB.

It is measured after a clean stop, and after kill -9 under load. The page cache is warm as far as the
files fit, because the restart of the program is measured, not that of the machine.
"""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.fill import RECORD_OVERHEAD, fill, require_dispatched
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import LOAD_TIMEOUT_S, Flush, Peer
from benchmarks.peers.rocketmq import RocketMQ

TOPIC = "start"
QUEUES = 4
LOG_BYTES = 10_000_000_000
BATCH, BODY_BYTES = 100, 1024
LOAD_S = 1.0  # duration of appends before the kill
CLEAN, KILLED = KEYS = ("start_clean_s", "start_killed_s")


def start_rocketmq(folder: Path, scale: float) -> list[Figure]:
    """Return the times of both starts."""
    with RocketMQ(folder, Flush.SYNC) as peer:
        peer.create_topic(TOPIC, QUEUES)
        require_dispatched(peer, fill(peer, TOPIC, _messages(scale), batch=BATCH, body=BODY_BYTES))
        return _starts(peer, topics=1, producers=QUEUES, in_flight=1, batch=BATCH, body=BODY_BYTES)


def start_kafka(folder: Path, scale: float) -> list[Figure]:
    """Return the times of both starts. Appends go to the page cache, because an fsync per batch would take too long."""
    with Kafka(folder, Flush.ASYNC) as peer:
        peer.create_topic(TOPIC, QUEUES)
        peer.load("Fill", topic=TOPIC, messages=_messages(scale), queues=QUEUES, batch=BATCH, body=BODY_BYTES)
        return _starts(peer, queues=QUEUES, producers=QUEUES, batch=BATCH, body=BODY_BYTES)


def _messages(scale: float) -> int:
    return int(LOG_BYTES * scale / (BODY_BYTES + RECORD_OVERHEAD))


def _starts(peer: Peer, **append_settings: object) -> list[Figure]:
    peer.stop()
    clean = seconds_to_first_pull(peer, TOPIC)
    with peer.begin("Append", topic=TOPIC, warm_s=LOAD_TIMEOUT_S, measured_s=0, **append_settings) as load:
        load.next_line()
        time.sleep(LOAD_S)
        peer.kill()
    killed = seconds_to_first_pull(peer, TOPIC)
    return [Figure(CLEAN, clean, "s"), Figure(KILLED, killed, "s")]


def seconds_to_first_pull(peer: Peer, topic: str) -> float:
    """Start *peer* while a running client repeatedly requests the first message of *topic*, and return the seconds."""
    with peer.begin("FirstPull", topic=topic) as client:
        client.next_line()
        peer.start()
        answered_ns: int = client.answer()["answered_ns"]
    return (answered_ns - peer.server.started_ns) / 1e9
