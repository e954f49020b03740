"""Append → visible, open loop: the time from when a message was due until a waiting consumer has it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Flush
from benchmarks.peers.rocketmq import RocketMQ
from benchmarks.peers.work.clock import clock
from benchmarks.rows.visible import enough

TOPIC = "visible"
RATE = 200
BODY_BYTES = 1024
MEASURED_S = 36.0  # 7,200 messages: enough for a p99.9; other brokers have no epochs
PERCENTILES = ("p50", "p99", "p999")


def visible(peer_class: type[RocketMQ | Kafka], key: str, folder: Path, scale: float, *, flush: Flush) -> list[Figure]:
    """Return p50, p99 and p99.9 in ms, with the keys *key*_p50 and so on."""
    with peer_class(folder, flush) as peer:
        peer.create_topic(TOPIC, 1)
        answer = peer.load("Visible", topic=TOPIC, rate=RATE, body=BODY_BYTES, **clock(enough(scale), MEASURED_S))
    note = f"{answer['samples']:,} at {RATE}/s, greatest {answer['max_ms']:.1f} ms"
    return [Figure(f"{key}_{percentile}", answer[f"{percentile}_ms"], "ms", note) for percentile in PERCENTILES]
