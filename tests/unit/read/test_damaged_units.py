"""Units that do not point at their own message: every such offset is reported, and all other messages are returned."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.built_store import BuiltStore
from tidemark.read.lookup.topic_scan import TopicQuery, scan_topic
from tidemark.read.pull import PullRequest, PullStatus, pull
from tidemark.read.pull_as_broker import pull_as_broker
from tidemark.read.store_reader import StoreReader
from tidemark.read.tag_filter import TagFilter

COUNT, DAMAGED = 20, 7
SIZES = {"orders": 20, "others": 20, "batches": 46}
TOPICS = pytest.mark.parametrize("topic", ["orders", "batches"])


class Damage(NamedTuple):
    """Bytes to write over a unit, made of the unit, its successor and the unit of another topic's record."""

    name: str
    make: Callable[[bytes, bytes, bytes], bytes]


def _with_size(unit: bytes, size: int) -> bytes:
    return unit[:8] + struct.pack(">i", size) + unit[12:]


def _with_place(unit: bytes, place: int) -> bytes:
    return struct.pack(">q", place) + unit[8:]


DAMAGES = [
    Damage("zeroed", lambda unit, _, __: bytes(len(unit))),
    Damage("another message of the queue", lambda _, successor, __: successor),
    Damage("a record of another topic", lambda unit, _, other: other + unit[12:]),
    Damage("junk", lambda unit, _, __: b"\xa5" * len(unit)),
    Damage("too long", lambda unit, _, __: _with_size(unit, struct.unpack_from(">i", unit, 8)[0] + 1)),
    Damage("huge", lambda unit, _, __: _with_size(unit, 1 << 30)),
    Damage("negative size", lambda unit, _, __: _with_size(unit, -5)),
    Damage("within a record", lambda unit, _, __: _with_place(unit, struct.unpack_from(">q", unit)[0] + 4)),
    Damage("beyond the log", lambda unit, _, __: _with_place(unit, 1 << 40)),
]


@pytest.fixture
def filled(built: BuiltStore) -> BuiltStore:
    """Write COUNT records to each topic, with one message each (batches: two), 5 units a file."""
    built.units_a_file = 5
    built.topic("others")
    for number in range(COUNT):
        built.append("orders", f"m{number}".encode(), {"TAGS": "A"})
        built.append("others", f"m{number}".encode(), {"TAGS": "A"})
        built.append_batch("batches", [(f"{number}.{part}".encode(), {"TAGS": "A"}, 0) for part in range(2)])
    built.publish()
    return built


def unit_of(built: BuiltStore, topic: str, number: int) -> bytes:
    size = SIZES[topic]
    root = "batchconsumequeue" if topic == "batches" else "consumequeue"
    start = number // 5 * 5 * size
    data = (built.root / root / topic / "0" / f"{start:020d}").read_bytes()
    return data[number * size - start :][:size]


def offsets_of(topic: str, number: int) -> list[int]:
    return [number] if topic == "orders" else [2 * number, 2 * number + 1]


def read_all(built: BuiltStore, topic: str, *, tags: TagFilter | None = None) -> tuple[list[int], list[int]]:
    """Pull page by page; return the queue offsets of all messages, and those that were reported as skipped."""
    store = StoreReader(built.root)
    queue = store.queue(topic, 0)
    bounds = store.bounds(queue, store.watermark())
    given: list[int] = []
    skipped: list[int] = []
    cursor = bounds.min_offset
    while cursor < bounds.max_offset:
        result = pull(queue, store.log, bounds, PullRequest(cursor, 3, 1 << 20, tags=tags))
        given += [int(offset) for part in result.parts for offset in part.messages["queue_offset"]]
        for skip in result.skipped:
            skipped += range(skip.queue_offset, skip.queue_offset + skip.message_count)
        assert result.next_offset > cursor, "the cursor did not move"
        cursor = result.next_offset
    return given, skipped


@TOPICS
@pytest.mark.parametrize("with_tags", [False, True], ids=["all", "by tag"])
@pytest.mark.parametrize("damage", DAMAGES, ids=[damage.name for damage in DAMAGES])
def test_a_damaged_unit_is_reported_and_the_others_are_returned(
    filled: BuiltStore, topic: str, with_tags: bool, damage: Damage
) -> None:
    unit, successor = unit_of(filled, topic, DAMAGED), unit_of(filled, topic, DAMAGED + 1)
    other = unit_of(filled, "others", DAMAGED)[:12]
    filled.write_units(topic, 0, DAMAGED, damage.make(unit, successor, other))
    given, skipped = read_all(filled, topic, tags=TagFilter.parse(["A"]) if with_tags else None)
    expected = [offset for number in range(COUNT) if number != DAMAGED for offset in offsets_of(topic, number)]
    if topic == "batches" and damage.name == "another message of the queue":
        assert skipped == offsets_of(topic, DAMAGED)  # the unit holds the next batch twice, and none holds this one
    assert given == expected
    assert set(offsets_of(topic, DAMAGED)[:1]) <= set(skipped) <= set(offsets_of(topic, DAMAGED))


@TOPICS
def test_zeroed_units_near_the_end_do_not_hide_later_units(filled: BuiltStore, topic: str) -> None:
    """The queue's last file has a hole; a reader with cached ends and a new reader agree."""
    for number in (COUNT - 4, COUNT - 3, COUNT - 2):
        filled.write_units(topic, 0, number, bytes(SIZES[topic]))
    given, skipped = read_all(filled, topic)
    lost = [offset for number in (COUNT - 4, COUNT - 3, COUNT - 2) for offset in offsets_of(topic, number)]
    every = [offset for number in range(COUNT) for offset in offsets_of(topic, number)]
    assert given == [offset for offset in every if offset not in lost]
    assert skipped[:1] == lost[:1]


def test_a_missing_queue_file_is_reported_with_its_offsets(filled: BuiltStore) -> None:
    (filled.root / "consumequeue" / "orders" / "0" / f"{10 * 20:020d}").unlink()
    given, skipped = read_all(filled, "orders")
    assert given == [*range(10), *range(15, COUNT)]
    assert sorted(set(skipped)) == list(range(10, 15))


def test_a_missing_batch_queue_file_is_reported_with_its_offsets(filled: BuiltStore) -> None:
    (filled.root / "batchconsumequeue" / "batches" / "0" / f"{10 * 46:020d}").unlink()
    given, skipped = read_all(filled, "batches")
    assert given == [*range(20), *range(30, 2 * COUNT)]
    assert sorted(set(skipped)) == list(range(20, 30))


def test_a_topic_scan_returns_no_record_of_another_topic(filled: BuiltStore) -> None:
    other = unit_of(filled, "others", DAMAGED)[:12]  # with the same queue id and offset
    filled.write_units("orders", 0, DAMAGED, other + unit_of(filled, "orders", DAMAGED)[12:])
    store = StoreReader(filled.root)
    answer = scan_topic(store, store.watermark(), TopicQuery("orders", limit=100))
    found = [int(offset) for part in answer.parts for offset in part.messages["queue_offset"]]
    assert found == [number for number in range(COUNT) if number != DAMAGED]
    assert [(skip.queue_offset, skip.reason) for skip in answer.skipped] == [(DAMAGED, "OTHER_QUEUE")]


def test_restarted_queue_offsets_are_not_damage(built: BuiltStore) -> None:
    """A broker appends a record with queue offset 0 at the queue's end (docs/format.md §4)."""
    built.append("orders", b"a")
    built.append("orders", b"b", queue_offset=0)
    built.publish()
    store = StoreReader(built.root)
    queue = store.queue("orders", 0)
    result = pull(queue, store.log, store.bounds(queue, store.watermark()), PullRequest(0, 10, 1 << 20))
    assert (result.status, result.message_count, result.skipped) == (PullStatus.FOUND, 2, [])


def test_a_topic_scan_of_damaged_units_is_empty(filled: BuiltStore) -> None:
    for number in range(COUNT):
        filled.write_units("orders", 0, number, _with_place(unit_of(filled, "orders", number), 1 << 40))
    store = StoreReader(filled.root)
    answer = scan_topic(store, store.watermark(), TopicQuery("orders", limit=100))
    assert answer.parts == []


@TOPICS
def test_a_pull_as_broker_never_moves_the_cursor_back(filled: BuiltStore, topic: str) -> None:
    filled.write_units(topic, 0, DAMAGED, bytes(SIZES[topic]))
    store = StoreReader(filled.root)
    queue = store.queue(topic, 0)
    bounds = store.bounds(queue, store.watermark())
    cursor = 0
    while cursor < bounds.max_offset:
        result = pull_as_broker(queue, store.log, bounds, PullRequest(cursor, 2, 1 << 20), log_end=filled.end)
        assert result.next_offset > cursor
        cursor = result.next_offset
