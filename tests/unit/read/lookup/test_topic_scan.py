"""A topic by store time, page by page."""

from __future__ import annotations

import dataclasses

import pytest

from tests.built_store import PRE_BLANK, BuiltStore
from tidemark.read.lookup.topic_scan import TopicQuery, scan_topic
from tidemark.read.store_reader import StoreReader


def pages(built: BuiltStore, query: TopicQuery) -> list[list[tuple[int, int]]]:
    """Return (physical offset, queue offset) of all pages."""
    reader = StoreReader(built.root)
    found: list[list[tuple[int, int]]] = []
    while True:
        answer = scan_topic(reader, reader.watermark(), query)
        found.append(
            [
                (int(message["physical_offset"]), int(message["queue_offset"]))
                for part in answer.parts
                for message in part.messages
            ]
        )
        if answer.after is None:
            return found
        query = dataclasses.replace(query, after=answer.after)


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
@pytest.mark.parametrize("max_bytes", [1, 400, 1 << 20])
def test_pages_of_a_topic_scan_hold_all_messages(built: BuiltStore, limit: int, max_bytes: int) -> None:
    """Two queues have very different lengths, and one has a hole; the limits of a page do not matter."""
    expected = []
    for number in range(60):
        queue_id = 0 if number % 7 else 1
        if number == 30:
            built.write_units("orders", 0, built.next["orders", 0], PRE_BLANK)
            built.next["orders", 0] += 1
        record = built.append("orders", b"x", queue_id=queue_id)
        expected.append((record.physical_offset, record.queue_offset))
    built.publish()
    built.append("orders", b"hidden")
    found = pages(built, TopicQuery("orders", limit=limit, max_bytes=max_bytes))
    assert [message for page in found for message in page] == expected
    assert max(map(len, found)) <= limit


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_a_page_may_end_within_an_inner_batch(built: BuiltStore, limit: int) -> None:
    """The next page starts with the next element."""
    expected = []
    for size in (3, 1, 5, 2):
        record = built.append_batch("batches", [(b"x", {}, 0)] * size)
        expected += [(record.physical_offset, record.queue_offset + i) for i in range(size)]
    built.publish()
    found = pages(built, TopicQuery("batches", limit=limit, max_bytes=1))
    assert [message for page in found for message in page] == expected


def test_a_topic_scan_includes_both_times(built: BuiltStore) -> None:
    """Both times are inclusive, with equal times at both ends."""
    times = [100, 100, 105, 110, 110, 111]
    records = [built.append("orders", b"x", queue_id=i % 2, at_ms=time) for i, time in enumerate(times)]
    built.publish()
    for from_ms, to_ms in ((0, 99), (100, 100), (101, 110), (110, 200), (112, 200)):
        found = pages(built, TopicQuery("orders", from_ms, to_ms, limit=2))
        expected = [one.physical_offset for one in records if from_ms <= one.store_timestamp <= to_ms]
        assert [place for page in found for place, _ in page] == expected
