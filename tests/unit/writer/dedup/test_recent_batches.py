"""The window of recent batches, and the keys of the log's tail."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from services.writer.batch.batch import Batch, QueueKey, Wrapper
from services.writer.batch.record_encoder import u8
from services.writer.dedup.recent_batches import Earlier, RecentBatches, TailKeys
from tests.builders import properties, row_of_records
from tidemark.format.check import Checker

LOG = [
    {"topic": b"t", "properties": properties({"UNIQ_KEY": key}) if key else b"", "queue_offset": i}
    for i, key in enumerate(["k" * 32, "", "short", "k" * 32, "é" * 10, "x" * 33])
]


def batch(key: bytes, *, topic: str = "t", count: int = 2) -> Batch:
    wrapper = Wrapper(bytes(8), 0)
    return Batch(QueueKey(topic, 0), u8(b"\x01t"), u8(b""), count, 0, wrapper, key, u8(b""))


def tail(max_bytes: int = 1 << 20) -> tuple[TailKeys, list[int]]:
    data = np.frombuffer(row_of_records(LOG), np.uint8)
    rows = Checker().check(data, base_offset=0).requests
    keys = TailKeys(max_bytes)
    for row in range(rows.size):  # one by one, as from several parts
        keys.add(data, rows[row : row + 1])
    keys.close()
    return keys, [int(offset) for offset in rows["physical_offset"]]


def test_tail_finds_every_key_of_any_length() -> None:
    """It finds all positions of a key, ascending; a record without key and an unknown key are not found."""
    keys, places = tail()
    assert keys.find(b"k" * 32) == [places[0], places[3]]
    assert keys.find(b"short") == [places[2]]
    assert keys.find("é".encode() * 10) == [places[4]]
    assert keys.find(b"x" * 33) == [places[5]]
    assert keys.find(b"unknown") == []
    assert len(keys) == 5


def test_tail_keeps_the_last_bytes_of_the_log_only() -> None:
    """Records further back than the limit are dropped."""
    keys, places = tail(max_bytes=1)
    assert keys.find(b"x" * 33) == [places[5]]
    assert keys.find(b"short") == []


def test_the_window_finds_its_batches_by_topic_and_key() -> None:
    """It knows place and count by topic and key; not forgotten batches, nor batches without a key."""
    window = RecentBatches(10, TailKeys(0))
    window.add(batch(b"k1"), 100)
    window.add(batch(b"k2"), 200)
    window.add(batch(b""), 300)
    window.forget(batch(b"k2"))
    assert window.find(batch(b"k1")) == [Earlier(100, 2)]
    assert window.find(batch(b"k1", topic="other")) == []
    assert window.find(batch(b"k2")) == []
    assert window.find(batch(b"")) == []


def test_the_window_searches_the_tail_until_it_is_full() -> None:
    """After as many batches as the window holds, records from before the start are no longer considered."""
    keys, places = tail()
    window = RecentBatches(2, keys)
    assert window.find(batch(b"short")) == [Earlier(places[2], None)]
    window.add(batch(b"n1"), 5000)
    assert window.find(batch(b"short")) == [Earlier(places[2], None)]
    window.add(batch(b"n2"), 6000)
    assert window.find(batch(b"short")) == []


def test_batches_in_the_window_are_not_tracked_by_the_garbage_collector() -> None:
    """A full collection would stop the writer for longer, the more batches are remembered."""
    window = RecentBatches(10_000, TailKeys(0))
    gc.collect()
    before = len(gc.get_objects())
    for number in range(10_000):
        window.add(batch(b"%032d" % number), number)
    gc.collect()
    assert len(gc.get_objects()) - before < 100


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_window_keeps_the_newest_batches_up_to_its_limit(limit: int) -> None:
    """The oldest are dropped first; a window of size 0 recognises nothing."""
    window = RecentBatches(limit, TailKeys(0))
    for number in range(5):
        window.add(batch(b"k%d" % number), number)
    found = [number for number in range(5) if window.find(batch(b"k%d" % number))]
    assert found == list(range(5 - limit, 5))
