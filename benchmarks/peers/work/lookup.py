"""One message by a key that it has alone or by its offset message id, among ten million: warm, and from the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from benchmarks.peers.figures import Figure
from benchmarks.peers.fill import Filled, fill, require_dispatched
from benchmarks.peers.page_cache import drop_page_cache
from benchmarks.peers.peer import Answer, Flush
from benchmarks.peers.rocketmq import RocketMQ

TOPIC = "lookup"
QUEUES = 4
MESSAGES = 10_000_000
BATCH, BODY_BYTES = 1000, 100
SAMPLES = 2000
COLD_LOOKUPS = 300
# Each message has two entries, its key and the UNIQ_KEY of its batch; so many need not be looked for in two files.
ONE_INDEX_FILE: Mapping[str, object] = {"maxIndexNum": 40_000_000}
HOT = 5  # messages that warm the JVMs up where the page cache must stay cold
WARM_UPS = 4000
KEYS = ("key_lookup_warm_p50", "key_lookup_warm_p99", "key_lookup_cold_p99", "id_lookup_p99")


def lookup(folder: Path, scale: float) -> list[Figure]:
    """Milliseconds of one client, one lookup at a time."""
    with RocketMQ(folder, Flush.ASYNC, settings=ONE_INDEX_FILE) as peer:
        peer.create_topic(TOPIC, QUEUES)
        filled = fill(peer, TOPIC, int(MESSAGES * scale), batch=BATCH, body=BODY_BYTES, keyed_samples=SAMPLES)
        require_dispatched(peer, filled)
        samples = len(filled.samples.read_text().splitlines())
        warm = _measure(peer, filled, "key", hot=samples, skip=0, lookups=samples)
        by_id = _measure(peer, filled, "id", hot=samples, skip=0, lookups=samples)
        peer.stop()
        dropped = drop_page_cache(peer.store)
        peer.start()
        cold = _measure(peer, filled, "key", hot=HOT, skip=HOT, lookups=min(COLD_LOOKUPS, samples - HOT))
    note = f"{filled.messages:,} messages; {{:,}} lookups"
    return [
        Figure(KEYS[0], warm["p50_ms"], "ms", note.format(warm["samples"])),
        Figure(KEYS[1], warm["p99_ms"], "ms", note.format(warm["samples"])),
        Figure(KEYS[2], cold["p99_ms"], "ms", f"{note.format(cold['samples'])}; restarted, {dropped}"),
        Figure(KEYS[3], by_id["p99_ms"], "ms", note.format(by_id["samples"])),
    ]


def _measure(peer: RocketMQ, filled: Filled, by: str, *, hot: int, skip: int, lookups: int) -> Answer:
    places = {"samples_file": filled.samples, "hot": hot, "skip": skip}
    return peer.load("Lookup", topic=TOPIC, by=by, warm_ups=max(WARM_UPS, 2 * hot), lookups=lookups, **places)
