"""Appends of batches from four producers as fast as they are acknowledged, and of single messages from 16 threads."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.kafka import Kafka
from benchmarks.peers.peer import Answer, Flush
from benchmarks.peers.rocketmq import RocketMQ
from benchmarks.peers.work.clock import clock

TOPIC = "append"
PRODUCERS = QUEUES = 4
IN_FLIGHT = 4  # requests of one producer that wait for their answers; Kafka's client keeps up to 5
THREADS = 16
SEND_BODY_BYTES = 100


def append_rocketmq(
    key: str,
    folder: Path,
    scale: float,
    *,
    flush: Flush,
    batch: int,
    body: int,
    batch_queue: bool = False,
    peer_class: type[RocketMQ] = RocketMQ,
) -> list[Figure]:
    """Return messages per second. batch_queue: to a topic that stores a batch as one record."""
    with peer_class(folder, flush) as peer:
        peer.create_topics(TOPIC, QUEUES, batch=batch_queue)
        answer = peer.load(
            "Append",
            topic=TOPIC,
            topics=1,
            producers=PRODUCERS,
            in_flight=IN_FLIGHT,
            batch=batch,
            body=body,
            **clock(scale),
        )
    return [_rate(key, answer, f"{PRODUCERS} producers, {IN_FLIGHT} batches of each in flight")]


def append_kafka(
    key: str,
    folder: Path,
    scale: float,
    *,
    flush: Flush,
    batch: int,
    body: int,
    peer_class: type[Kafka] = Kafka,
) -> list[Figure]:
    """Return records per second; the note has the number of records per request."""
    with peer_class(folder, flush) as peer:
        peer.create_topic(TOPIC, QUEUES)
        answer = peer.load(
            "Append", topic=TOPIC, producers=PRODUCERS, queues=QUEUES, batch=batch, body=body, **clock(scale)
        )
    return [_rate(key, answer, f"{PRODUCERS} producers, {answer['batch']:.0f} records a request")]


def send(peer_class: type[RocketMQ | Kafka], key: str, folder: Path, scale: float, *, flush: Flush) -> list[Figure]:
    """Return messages per second, with one message in flight per thread."""
    with peer_class(folder, flush) as peer:
        peer.create_topic(TOPIC, QUEUES)
        return [send_rate(key, peer.load("Send", **send_settings(scale)))]


def send_settings(scale: float) -> dict[str, object]:
    """Return the settings of the load program Send."""
    return {"topic": TOPIC, "queues": QUEUES, "threads": THREADS, "body": SEND_BODY_BYTES, **clock(scale)}


def send_rate(key: str, answer: Answer) -> Figure:
    """Return the figure of the load program Send."""
    return _rate(key, answer, f"{THREADS} threads, p50 {answer['p50_ms']:.2f} ms, p99 {answer['p99_ms']:.2f} ms")


def _rate(key: str, answer: Answer, note: str) -> Figure:
    return Figure(key, answer["messages_per_s"], "msg/s", note)
