"""Deleted topics are hidden at once, and new after they are created again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from tests.built_store import BuiltStore
from tidemark.errors import MessageNotFoundError, QueueIllegalError, TopicNotFoundError
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key, find_by_key_as_broker
from tidemark.read.lookup.key_places import places_of_key
from tidemark.read.lookup.offset_by_time import offset_by_time
from tidemark.read.lookup.record_lookup import message_at
from tidemark.read.lookup.topic_scan import TopicQuery, scan_topic
from tidemark.read.pull import PullRequest, PullResult, PullStatus, pull
from tidemark.read.store_reader import StoreReader
from tidemark.read.unit_run import UnitsGoneError

A = TypeVar("A")
OLD = 5


def put(built: BuiltStore, topic: str, count: int, *, key: str = "k") -> list[int]:
    """Append visible messages (on a batch topic each in an inner batch); return their physical offsets."""
    found = []
    for number in range(count):
        entries = {"UNIQ_KEY": f"u{built.end}", "KEYS": key}
        if built.is_batch(topic):
            elements = [(f"{number}".encode(), entries, 0), (b"second", {}, 0)]
            found.append(built.append_batch(topic, elements, entries).physical_offset)
        else:
            found.append(built.append(topic, f"{number}".encode(), entries).physical_offset)
    built.publish()
    return found


def bounds(store: StoreReader, topic: str, queue_id: int = 0) -> tuple[int, int]:
    found = store.bounds(store.queue(topic, queue_id), store.watermark())
    return found.min_offset, found.max_offset


def steady(look: Callable[..., A], *arguments: Any) -> A:
    """Retry after files were deleted meanwhile, as each reader does."""
    with contextlib.suppress(UnitsGoneError):
        return look(*arguments)
    return look(*arguments)


def pulled(store: StoreReader, topic: str, offset: int) -> PullResult:
    queue = store.queue(topic, 0)
    return pull(queue, store.log, store.bounds(queue, store.watermark()), PullRequest(offset, 100, 1 << 20))


def by_key(store: StoreReader, topic: str, key: str = "k", *, as_broker: bool = False) -> list[int]:
    index = IndexReader(store.paths.index)
    answer = (find_by_key_as_broker if as_broker else find_by_key)(
        store, index, store.watermark(), KeyQuery(topic, key, limit=100)
    )
    return [int(place) for part in answer.parts for place in part.messages["physical_offset"]]


def scanned(store: StoreReader, topic: str) -> list[int]:
    answer = scan_topic(store, store.watermark(), TopicQuery(topic))
    return [int(place) for part in answer.parts for place in part.messages["physical_offset"]]


@pytest.mark.parametrize("topic", ["orders", "batches"])
def test_a_deleted_topic_is_unknown_immediately(built: BuiltStore, topic: str) -> None:
    places = put(built, topic, OLD)
    store = StoreReader(built.root)
    assert message_at(store, store.watermark(), places[0]) is not None
    built.delete_topic(topic)
    assert topic not in store.topics()
    assert store.known_queue(topic, 0) is None
    for look in (lambda: store.topic(topic), lambda: store.queue(topic, 0), lambda: store.queues(topic)):
        with pytest.raises(TopicNotFoundError):
            look()
    with pytest.raises(MessageNotFoundError):
        message_at(store, store.watermark(), places[0])


@pytest.mark.parametrize("are_dropped", [False, True], ids=["files-left", "files-dropped"])
@pytest.mark.parametrize(("topic", "per_record"), [("orders", 1), ("batches", 2)])
def test_a_recreated_topic_is_empty_at_its_next_offset(
    built: BuiltStore, topic: str, per_record: int, are_dropped: bool
) -> None:
    """The numbering continues, and no answer has the old messages, whether their files still exist or not."""
    old, end = put(built, topic, OLD), OLD * per_record
    store = StoreReader(built.root)
    assert bounds(store, topic) == (0, end)
    built.delete_topic(topic)
    built.topic(topic, batch=topic == "batches")
    if are_dropped:
        assert bounds(store, topic) == (end, end)  # cached for this watermark
        built.drop_queues(topic)
    assert steady(bounds, store, topic) == bounds(StoreReader(built.root), topic) == (end, end)
    assert pulled(store, topic, end).status is PullStatus.OFFSET_OVERFLOW_ONE
    assert pulled(store, topic, 0).status is PullStatus.OFFSET_TOO_SMALL
    queue = store.queue(topic, 0)
    assert offset_by_time(queue, store.log, store.bounds(queue, store.watermark()), 0) == (end, None)
    assert scanned(store, topic) == by_key(store, topic) == by_key(store, topic, as_broker=True) == []

    new = put(built, topic, 3)
    assert bounds(store, topic) == (end, end + 3 * per_record)
    found = pulled(store, topic, end)
    assert (found.status, found.message_count, found.skipped) == (PullStatus.FOUND, 3 * per_record, [])
    assert pulled(store, topic, end - 1).status is PullStatus.OFFSET_TOO_SMALL
    assert sorted(set(by_key(store, topic))) == sorted(set(scanned(store, topic))) == new
    assert sorted(set(by_key(store, topic, as_broker=True))) == new
    for place in old:
        with pytest.raises(MessageNotFoundError):
            message_at(store, store.watermark(), place)


def test_a_recreated_topic_keeps_its_bounds_while_the_pipeline_lags(built: BuiltStore) -> None:
    """Neither old messages above the watermark nor new ones that are not visible yet change the next offset."""
    put(built, "orders", 2)
    visible = built.end
    for _ in range(3):
        built.append("orders")
    built.publish(visible)
    built.delete_topic("orders")
    built.topic("orders")
    store = StoreReader(built.root)
    assert bounds(store, "orders") == (5, 5)
    built.append("orders", b"new")
    assert bounds(store, "orders") == (5, 5)
    built.publish()
    assert bounds(store, "orders") == (5, 6)


@pytest.mark.parametrize(("first", "second"), [(False, True), (True, False)], ids=["simple-batch", "batch-simple"])
def test_a_topic_recreated_with_another_queue_type_is_empty_at_its_next_offset(
    built: BuiltStore, first: bool, second: bool
) -> None:
    """The old files are in the other folder until the pipeline drops them."""
    built.topic("events", batch=first)
    put(built, "events", 4)
    end = built.next["events", 0]
    store = StoreReader(built.root)
    bounds(store, "events")
    built.delete_topic("events")
    built.topic("events", batch=second)
    assert bounds(store, "events") == (end, end)
    put(built, "events", 1)
    assert bounds(store, "events") == (end, built.next["events", 0])


def test_a_recreated_topic_has_only_its_configured_and_written_queues(built: BuiltStore) -> None:
    for queue_id in (0, 1):
        built.append("orders", queue_id=queue_id)
    built.publish()
    store = StoreReader(built.root)
    assert bounds(store, "orders", 1) == (0, 1)
    built.delete_topic("orders")
    built.topic("orders", queues=1)
    assert store.queue_ids(store.topic("orders")) == [0]
    assert store.known_queue("orders", 1) is None
    with pytest.raises(QueueIllegalError):
        store.queue("orders", 1)
    built.append("orders", queue_id=1)  # the queue was configured again, and removed again
    built.publish()
    assert store.queue_ids(store.topic("orders")) == [0, 1]
    assert bounds(store, "orders", 1) == (1, 2)


def test_a_topic_deleted_twice_hides_the_messages_of_both_lives(built: BuiltStore) -> None:
    store = StoreReader(built.root)
    for life in (1, 2):
        put(built, "orders", OLD)
        built.delete_topic("orders")
        built.topic("orders")
        assert bounds(store, "orders") == (life * OLD, life * OLD)
        assert by_key(store, "orders") == []


def test_a_key_lookup_omits_records_of_a_deleted_topic(built: BuiltStore) -> None:
    put(built, "orders", OLD)
    store = StoreReader(built.root)
    watermark = store.watermark()
    built.delete_topic("orders")
    built.topic("orders")
    put(built, "orders", 2)
    index_file = max(int(path.name) for path in store.paths.index.iterdir())
    built.marks.set_index_file(index_file)
    found = places_of_key(store, store.watermark(), topic="orders", key="k", most=100)
    assert watermark.physical_offset < store.watermark().physical_offset
    assert found is not None
    assert [place.queue_offset for place in found] == [OLD, OLD + 1]
