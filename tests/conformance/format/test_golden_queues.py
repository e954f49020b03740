"""Queue files of the golden stores, rebuilt from their logs with Tidemark's encoders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.format.golden import COMPLETE, STORES, queues_of, units_by_queue
from tidemark.format import batch_consume_queue, consume_queue
from tidemark.format.dispatch_request import RequestArray
from tidemark.store.originals.topics import load_topics

pytestmark = pytest.mark.conformance

GoldenStore = Callable[[str], Path]


def simple_units(rows: RequestArray) -> bytes:
    return consume_queue.encode_units(
        physical_offset=rows["physical_offset"], message_size=rows["message_size"], tags_code=rows["tags_code"]
    )


def batch_units(rows: RequestArray) -> bytes:
    return batch_consume_queue.encode_units(
        physical_offset=rows["physical_offset"],
        message_size=rows["message_size"],
        tags_code=rows["tags_code"],
        store_timestamp=rows["store_timestamp"],
        base_offset=rows["base_offset"],
        batch_size=rows["batch_size"],
    )


@pytest.mark.parametrize("name", STORES)
def test_topic_attributes_match_the_types_of_queue_folders(golden_store: GoldenStore, name: str) -> None:
    """The topic's queue.type in topics.json matches every queue folder."""
    store = golden_store(name)
    topics = load_topics(store / "config" / "topics.json")
    for folder, is_batch in (("consumequeue", False), ("batchconsumequeue", True)):
        found = {queue[0] for queue, _, _ in queues_of(store / folder)}
        assert found
        assert {topic for topic in found if topic in topics and topics[topic].is_batch != is_batch} == set()


@pytest.mark.parametrize("name", COMPLETE)
def test_queue_files_equal_those_of_the_broker(golden_store: GoldenStore, name: str) -> None:
    """Every queue of the log is there, byte for byte, and zero bytes follow."""
    store = golden_store(name)
    rows = units_by_queue(store)
    compared = 0
    for folder, encode in (("consumequeue", simple_units), ("batchconsumequeue", batch_units)):
        for queue, stored, start in queues_of(store / folder):
            assert start == 0
            assert stored == encode(rows.pop(queue)).ljust(len(stored), b"\0"), queue
            compared += 1
    assert rows == {}
    assert compared == {"mixed/store": 14, "killed/store-recovered": 7}[name]


@pytest.mark.parametrize("name", COMPLETE)
def test_unit_n_of_a_consume_queue_is_queue_offset_n(golden_store: GoldenStore, name: str) -> None:
    """Queue offsets in the log are dense from 0 in every queue, and bases of batches follow from their sizes."""
    store = golden_store(name)
    topics = load_topics(store / "config" / "topics.json")
    for (topic, _), rows in units_by_queue(store).items():
        if topic in topics and topics[topic].is_batch:
            expected = np.concatenate([[0], np.cumsum(rows["batch_size"])[:-1]])
            assert (rows["base_offset"] == expected).all()
        else:
            assert (rows["queue_offset"] == np.arange(len(rows))).all()


def test_lagging_queues_of_a_killed_broker_are_a_prefix(golden_store: GoldenStore) -> None:
    """The files of a killed broker are a prefix of those from its log."""
    store = golden_store("killed/store-killed")
    rows = units_by_queue(store)
    for folder, encode in (("consumequeue", simple_units), ("batchconsumequeue", batch_units)):
        for queue, stored, start in queues_of(store / folder):
            built = stored.rstrip(b"\0")
            assert start == 0
            assert encode(rows[queue]).startswith(built), queue


def test_queues_of_an_expired_log_are_equal_above_its_minimum(golden_store: GoldenStore) -> None:
    """Units of existing records equal Tidemark's; earlier ones point below the log's first file."""
    store = golden_store("expired/store")
    rows = units_by_queue(store)
    log_start = min(int(path.name) for path in (store / "commitlog").iterdir())
    for folder, encode, module in (
        ("consumequeue", simple_units, consume_queue),
        ("batchconsumequeue", batch_units, batch_consume_queue),
    ):
        for queue, stored, start in queues_of(store / folder):
            expected = encode(rows[queue])
            at = stored.index(expected[:12])
            assert stored[at:] == expected.ljust(len(stored) - at, b"\0")
            assert at % module.UNIT_SIZE == 0
            assert (module.decode_units(stored[:at])["physical_offset"] < log_start).all()
            if module is consume_queue:
                assert (start + at) // module.UNIT_SIZE == rows[queue]["queue_offset"][0]
