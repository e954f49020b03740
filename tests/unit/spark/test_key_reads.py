"""Messages with a key, found by the key index: the same as by a scan, and nothing else is read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.built_store import BuiltStore, java_hash
from tests.query_server import serve_query
from tidemark.client.received_message import TopicQueue
from tidemark.errors import CorruptMessageError
from tidemark.read.lookup.key_places import places_of_key
from tidemark.read.store_reader import StoreReader
from tidemark.spark.columns import SCHEMA
from tidemark.spark.source.batch_reader import BatchReader
from tidemark.spark.source.file_log import FileLog
from tidemark.spark.source.log import MessagePage
from tidemark.spark.source.ranges import QueueRange
from tidemark.spark.source.service_log import ServiceLog
from tidemark.spark.source.source_options import SourceOptions, read_options
from tidemark.spark.source.tasks import Task

_KEYS = ["Aa", "BB", "k", "k1", "ü", "u7", "nobody"]  # the first two have one hash
_QUEUES = 3
Row = tuple[str, int, int, bytes]


def planned(options: dict[str, Any]) -> tuple[BatchReader, list[QueueRange]]:
    """Return a reader and the ranges of its tasks."""
    reader = BatchReader(read_options(SourceOptions, {name: str(value) for name, value in options.items()}), SCHEMA)
    return reader, [one for task in reader.partitions() if isinstance(task, Task) for one in task.ranges]


def rows(options: dict[str, Any]) -> list[Row]:
    """Return all rows that are read."""
    reader, parts = planned(options)
    batches = reader.read(Task(tuple(parts)))
    return sorted(
        (row["topic"], row["queue_id"], row["queue_offset"], row["body"])
        for batch in batches
        for row in batch.to_pylist()
    )


def append_some(store: BuiltStore, count: int, choose: random.Random) -> None:
    """Append messages of two topics with any number of the keys, and unique keys, one of which is also a key."""
    for number in range(count):
        keys = " ".join(choose.sample(_KEYS[:-1], choose.choice([0, 0, 1, 1, 2])))
        entries = {"UNIQ_KEY": f"u{number}", "TAGS": choose.choice("AB")} | ({"KEYS": keys} if keys else {})
        topic = choose.choice(["orders", "orders", "events"])
        store.append(topic, b"%d" % number + bytes(choose.randrange(300)), entries, queue_id=choose.randrange(_QUEUES))


def record_newest_index_file(store: BuiltStore) -> None:
    """Record the newest index file, as the pipeline does with each publication."""
    store.marks.set_index_file(store.index_name)
    store.publish()


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store of several files of log, units and index; half of the last one is above the watermark."""
    assert java_hash("orders#Aa") == java_hash("orders#BB")
    built = BuiltStore(tmp_path / "store", log_file_size=16_384)
    built.topic("orders", queues=_QUEUES)
    built.topic("events", queues=_QUEUES)
    append_some(built, 400, random.Random(7))
    record_newest_index_file(built)
    append_some(built, 40, random.Random(8))
    return built


@pytest.fixture(params=["files", "service"])
def place(request: pytest.FixtureRequest, store: BuiltStore) -> Iterator[dict[str, str]]:
    """Yield the options of the place to read from."""
    if request.param == "files":
        yield {"path": str(store.root)}
        return
    with serve_query(store.root) as client:
        yield {"url": str(client.base_url)}


@pytest.mark.parametrize("expire", [False, True], ids=["whole", "expired"])
def test_an_index_read_equals_a_scan(store: BuiltStore, place: dict[str, str], expire: bool) -> None:
    """Every key, range of offsets and tag is tried, also after retention has removed files."""
    if expire:
        (store.root / "commitlog" / f"{0:020d}").unlink()
    choose = random.Random(9)
    for key in _KEYS:
        topic = choose.choice(["orders", "events"])
        ends = {str(queue): choose.randrange(20, 60) for queue in range(_QUEUES)}
        chosen: list[dict[str, Any]] = [
            {"subscribePattern": ".*", "endingOffsets": "latest"},
            {"subscribe": topic, "endingOffsets": json.dumps({topic: ends}), "tag": "A", "failOnDataLoss": "false"},
        ]
        for options in chosen:
            scanned = rows(place | options | {"key": key, "keyLookupLimit": 0, "minPartitions": 9})
            assert rows(place | options | {"key": key}) == scanned
            assert bool(scanned) == (key != "nobody")


def test_messages_indexed_later_are_not_missed(store: BuiltStore) -> None:
    """The index may be ahead of the watermark, never below it."""
    options = {"path": store.root, "subscribe": "orders", "key": "k"}
    before = rows(options)
    record_newest_index_file(store)
    assert len(rows(options)) > len(before)
    assert rows(options) == rows(options | {"keyLookupLimit": 0})


def test_only_the_offsets_of_the_key_are_read(
    store: BuiltStore, place: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is one task for one message, with one offset."""
    store.append("orders", b"rare", {"KEYS": "rare"}, queue_id=1)
    place_of_it = store.next["orders", 1] - 1
    append_some(store, 300, random.Random(10))
    record_newest_index_file(store)
    asked: list[tuple[TopicQueue, int, int]] = []
    for kind in (FileLog, ServiceLog):
        pages: Callable[..., Iterator[MessagePage]] = kind.pages

        def told(
            self: Any, queue: TopicQueue, start: int, end: int, *, pages: Any = pages, **more: Any
        ) -> Iterator[MessagePage]:
            asked.append((queue, start, end))
            yield from pages(self, queue, start, end, **more)

        monkeypatch.setattr(kind, "pages", told)
    options = place | {"subscribe": "orders", "key": "rare", "minPartitions": "5"}
    assert [row[3] for row in rows(options)] == [b"rare"]
    assert asked == [(TopicQueue("orders", 1), place_of_it, place_of_it + 1)]
    assert len(planned(options)[1]) == 1
    assert planned(options | {"key": "nobody"})[1] == []


def scans(options: dict[str, Any]) -> bool:
    """Return True if queues are read whole; the result must be that of a scan."""
    parts = planned(options)[1]
    assert rows(options) == rows(options | {"keyLookupLimit": 0})
    assert len({part.places is None for part in parts}) == 1
    return parts[0].places is None


def test_keys_with_more_hits_than_the_limit_are_scanned(store: BuiltStore, place: dict[str, str]) -> None:
    """There are more than the limit."""
    count = len(rows(place | {"subscribe": "orders", "key": "k1"}))
    hits = count + len(rows(place | {"subscribe": "events", "key": "k1"}))
    assert count < hits
    options = place | {"subscribe": "orders", "key": "k1"}
    assert not scans(options | {"keyLookupLimit": count})
    assert scans(options | {"keyLookupLimit": count - 1})


def test_inner_batches_are_scanned(store: BuiltStore, place: dict[str, str]) -> None:
    """Their messages' keys are in no index."""
    store.topic("batches", batch=True)
    store.append_batch("batches", [(b"a", {"KEYS": "k"}, 0), (b"b", {}, 0)])
    record_newest_index_file(store)
    assert [row[3] for row in rows(place | {"subscribe": "batches", "key": "k"})] == [b"a"]
    assert scans(place | {"subscribe": "batches", "key": "k"})


def test_queues_are_scanned_if_the_newest_index_file_is_not_the_recorded_one(store: BuiltStore) -> None:
    """The newest file is gone, or none was recorded."""
    options = {"path": store.root, "subscribe": "orders", "key": "k"}
    assert not scans(options)
    newest = store.root / "index" / str(store.marks.index_file)
    newest.rename(newest.with_suffix(".away"))
    assert scans(options)
    newest.with_suffix(".away").rename(newest)
    store.marks.set_index_file(0)
    assert scans(options)


@pytest.mark.parametrize(("slots", "entries"), [(7, 64), (12, 6), (7, 7)], ids=["no size", "as 2 slots", "as 2, too"])
def test_queues_are_scanned_if_the_index_has_other_sizes(tmp_path: Path, slots: int, entries: int) -> None:
    """The file's size may be that of other numbers too."""
    store = BuiltStore(tmp_path / "store", slots=slots, entries=entries)
    store.topic("orders", queues=_QUEUES)
    for number in range(40):
        store.append("orders", b"%d" % number, {"KEYS": f"k{number}"})
    record_newest_index_file(store)
    for number in range(0, 40, 13):
        options = {"path": store.root, "subscribe": "orders", "key": f"k{number}"}
        assert scans(options)
        assert [row[3] for row in rows(options)] == [b"%d" % number]


def test_queues_are_scanned_if_the_service_cannot_read_the_index(tmp_path: Path) -> None:
    """Its settings lack the size of the files."""
    store = BuiltStore(tmp_path / "store", slots=7, entries=64)
    store.topic("orders", queues=_QUEUES)
    store.append("orders", b"one", {"KEYS": "k"})
    store.publish()
    with serve_query(store.root) as client:
        assert scans({"url": str(client.base_url), "subscribe": "orders", "key": "k"})


@pytest.mark.parametrize("at", [12, 20, 4], ids=["queue id", "queue offset", "magic"])
def test_an_index_read_and_a_scan_agree_on_a_damaged_record(store: BuiltStore, at: int) -> None:
    """The scan reports it, or still finds it."""
    written = store.append("orders", b"here", {"KEYS": "mine"}, queue_id=2)
    record_newest_index_file(store)
    reader = StoreReader(store.root)
    assert places_of_key(reader, reader.watermark(), topic="orders", key="mine", most=9) is not None
    store.write_log(written.physical_offset + at, b"\x01")
    assert places_of_key(reader, reader.watermark(), topic="orders", key="mine", most=9) is None
    options = {"path": store.root, "subscribe": "orders", "key": "mine"}
    outcomes: list[object] = []
    for limit in (0, 1000):
        try:
            outcomes.append(rows(options | {"keyLookupLimit": limit}))
        except CorruptMessageError as error:
            outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


def test_a_damaged_body_is_reported_by_index_read_and_scan(store: BuiltStore, place: dict[str, str]) -> None:
    """The index and a scan report the same place."""
    written = store.append("orders", b"here", {"KEYS": "mine"}, queue_id=2)
    record_newest_index_file(store)
    store.write_log(written.physical_offset + 88, b"\xff")
    for limit in (0, 1000):
        with pytest.raises(CorruptMessageError, match=f"at queue offset {written.queue_offset}"):
            rows(place | {"subscribe": "orders", "key": "mine", "keyLookupLimit": limit})


@pytest.mark.parametrize("key", ["", "\ufffd", "k" * 40_000], ids=["empty", "no UTF-8", "too long"])
def test_keys_that_no_index_contains_are_scanned(store: BuiltStore, place: dict[str, str], key: str) -> None:
    """The index holds no such key in this form."""
    assert scans(place | {"subscribe": "orders", "key": key})
