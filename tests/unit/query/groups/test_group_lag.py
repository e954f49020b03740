from __future__ import annotations

import time
from pathlib import Path

import pytest

from services.indexer.query.groups.consumer_offsets import ConsumerOffset, ConsumerOffsets
from services.indexer.query.groups.group_lag import GroupLag
from tests.built_store import BuiltStore
from tidemark.metrics.topic_counts import OTHER
from tidemark.read.store_reader import StoreReader
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

MESSAGES = 5
LAG, LATENCY = "rocketmq_consumer_lag_messages", "rocketmq_consumer_lag_latency"


class FixedOffsets(ConsumerOffsets):
    """Offsets that a test names."""

    def __init__(self, root: Path, offsets: list[ConsumerOffset]) -> None:
        super().__init__(StorePaths(root), DiskStorage())
        self._fixed = offsets

    def all(self) -> list[ConsumerOffset]:  # type: ignore[override]  # a list is enough
        return self._fixed


@pytest.fixture
def built(tmp_path: Path) -> BuiltStore:
    store = BuiltStore(tmp_path)
    store.topic("orders", queues=2)
    store.topic("bills")
    for number in range(MESSAGES):
        store.append("orders", at_ms=store.clock + 1000, queue_id=number % 2)
    store.append("bills")
    store.publish()
    return store


def lags(
    built: BuiltStore, *offsets: tuple[str, str, int, int], limit: int = 10
) -> dict[str, dict[tuple[str, str], float]]:
    """Return both gauges by (topic, group)."""
    listed = [ConsumerOffset(*offset) for offset in offsets]
    lag = GroupLag(StoreReader(built.root), FixedOffsets(built.root, listed), limit=limit)
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples}  # type: ignore[misc]
        for family in lag.families()
    }


def test_lag_is_the_sum_over_the_queues_of_a_topic(built: BuiltStore) -> None:
    """Queue 0 has three messages, and queue 1 two."""
    found = lags(built, ("g", "orders", 0, 1), ("g", "orders", 1, 0), ("g", "bills", 0, 1))[LAG]
    assert sorted(found.values()) == [0, 4]
    assert {frozenset(pair) for pair in found} == {frozenset({"g", "orders"}), frozenset({"g", "bills"})}


def test_latency_is_the_age_of_the_oldest_message_that_was_not_committed(built: BuiltStore) -> None:
    stored_ms = built.clock - 1  # of the last message of queue 0; the one of `bills` came a millisecond later
    before_ms = time.time_ns() // 1_000_000
    (latency,) = lags(built, ("g", "orders", 0, 2), ("g", "orders", 1, 2))[LATENCY].values()
    assert before_ms - stored_ms <= latency <= time.time_ns() // 1_000_000 - stored_ms


def test_a_group_that_has_read_everything_has_no_lag(built: BuiltStore) -> None:
    found = lags(built, ("g", "bills", 0, 1), ("ahead", "bills", 0, 7))
    assert [set(gauge.values()) for gauge in found.values()] == [{0}, {0}]


def test_messages_that_are_not_visible_yet_do_not_count_as_lag(built: BuiltStore) -> None:
    built.append("bills")
    assert set(lags(built, ("g", "bills", 0, 0))[LAG].values()) == {1}


def test_an_offset_without_a_queue_does_not_hide_the_others(built: BuiltStore) -> None:
    found = lags(built, ("g", "gone", 0, 0), ("g", "orders", 9, 0), ("g", "bills", 0, 0))[LAG]
    assert list(found.values()) == [1]


def test_pairs_above_the_limit_share_one_label(built: BuiltStore) -> None:
    found = lags(built, ("a", "bills", 0, 0), ("b", "bills", 0, 0), ("c", "orders", 0, 0), limit=1)[LAG]
    assert found[OTHER, OTHER] == 1 + 3
    assert len(found) == 2
