"""Lookups of one message among ten million, by a unique key or by its offset message id, warm and from the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.page_cache import drop_page_cache, files_of, sync_files
from benchmarks.peers.figures import Figure
from benchmarks.peers.fill import Filled, fill, require_dispatched
from benchmarks.peers.peer import Answer, Flush
from benchmarks.peers.rocketmq import RocketMQ

TOPIC = "lookup"
QUEUES = 4
MESSAGES = 10_000_000
BATCH, BODY_BYTES = 1000, 100
WARM_LOOKUPS, COLD_LOOKUPS = 4000, 300
HOT = 5  # messages that warm up the JVMs when the page cache must stay cold
WARM_UPS = 4000
# Each message has two entries, its key and the UNIQ_KEY of its batch. With this limit they are all in one file.
ONE_INDEX_FILE: Mapping[str, object] = {"maxIndexNum": 40_000_000}
KEYS = ("key_lookup_warm_p50", "key_lookup_warm_p99", "key_lookup_cold_p99", "id_lookup_p99")


def lookup(folder: Path, scale: float) -> list[Figure]:
    """Return the milliseconds of a lookup by one client, one lookup at a time."""
    with RocketMQ(folder, Flush.ASYNC, settings=ONE_INDEX_FILE) as peer:
        peer.create_topic(TOPIC, QUEUES)
        filled = fill(peer, TOPIC, int(MESSAGES * scale), batch=BATCH, body=BODY_BYTES, keyed_samples=WARM_LOOKUPS)
        require_dispatched(peer, filled)
        warm, by_id = _warm(peer, filled, "key"), _warm(peer, filled, "id")
        peer.stop()
        sync_files(peer.store)
        drop_page_cache(files_of(peer.store))
        peer.start()
        cold = _cold(peer, filled)
    warm_note, id_note = _note(filled, warm), _note(filled, by_id)
    cold_note = f"{_note(filled, cold)}; before each the store's files dropped from the page cache"
    return [
        Figure(KEYS[0], warm["p50_ms"], "ms", warm_note),
        Figure(KEYS[1], warm["p99_ms"], "ms", warm_note),
        Figure(KEYS[2], cold["p99_ms"], "ms", cold_note),
        Figure(KEYS[3], by_id["p99_ms"], "ms", id_note),
    ]


def _note(filled: Filled, answer: Answer) -> str:
    lost = f" and {answer['lost']} not found" if answer["lost"] else ""
    return f"{filled.messages:,} messages, {answer['samples']:,} different ones looked up{lost}"


def _warm(peer: RocketMQ, filled: Filled, by: str) -> Answer:
    """Look up every sample, after each was looked up once."""
    warm_ups = max(WARM_UPS, filled.samples)
    places = {"hot": filled.samples, "skip": 0, "lookups": filled.samples, "stepwise": 0}
    return peer.load("Lookup", topic=TOPIC, by=by, samples_file=filled.samples_file, warm_ups=warm_ups, **places)


def _cold(peer: RocketMQ, filled: Filled) -> Answer:
    """Look up a few samples that were not looked up since the broker's start."""
    lookups = min(COLD_LOOKUPS, filled.samples - HOT)
    places = {"hot": HOT, "skip": HOT, "lookups": lookups, "stepwise": 1}
    samples_file = filled.samples_file
    with peer.begin("Lookup", topic=TOPIC, by="key", samples_file=samples_file, warm_ups=WARM_UPS, **places) as client:
        for _ in range(lookups):
            client.next_line()
            drop_page_cache(files_of(peer.store))
            client.go_on()
        return client.answer()
