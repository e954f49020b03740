"""Ten thousand queues on one store: batches spread over all queues, one pull from each queue, and a start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.fill import fill, require_dispatched
from benchmarks.peers.peer import Flush
from benchmarks.peers.rocketmq import RocketMQ
from benchmarks.peers.work.append import IN_FLIGHT, PRODUCERS
from benchmarks.peers.work.clock import clock
from benchmarks.peers.work.start import seconds_to_first_pull

TOPIC = "queues"
TOPICS, QUEUES = 100, 100  # of each topic
BATCH, BODY_BYTES = 100, 100
WHOLE_BATCHES: Mapping[str, object] = {"maxTransferCountOnMessageInMemory": BATCH}  # an answer contains a whole batch
KEYS = ("queues_10000_append", "queues_10000_pull", "queues_10000_start_s")


def queues(folder: Path, scale: float) -> list[Figure]:
    """Return messages per second of appends and pulls with a batch in each queue, and seconds of a clean start."""
    spread = {"topic": TOPIC, "topics": TOPICS}
    batches = {"producers": PRODUCERS, "in_flight": IN_FLIGHT, "batch": BATCH, "body": BODY_BYTES}
    with RocketMQ(folder, Flush.SYNC, settings=WHOLE_BATCHES) as peer:
        peer.create_topics(TOPIC, QUEUES, topics=TOPICS)
        filled = fill(peer, TOPIC, TOPICS * QUEUES * BATCH, batch=BATCH, body=BODY_BYTES, topics=TOPICS)
        require_dispatched(peer, filled)
        appended = peer.load("Append", **spread, **batches, **clock(scale))
        peer.load("AwaitDispatch", **spread)
        pulled = peer.load("PullOnce", **spread, threads=1, most=BATCH, **clock(scale))
        peer.stop()
        seconds = seconds_to_first_pull(peer, f"{TOPIC}-0")
    note = f"{TOPICS} topics of {QUEUES} queues"
    return [
        Figure(KEYS[0], appended["messages_per_s"], "msg/s", note),
        Figure(KEYS[1], pulled["messages_per_s"], "msg/s", f"{note}; {pulled['pulls_per_s']:,.0f} pulls/s"),
        Figure(KEYS[2], seconds, "s", note),
    ]
