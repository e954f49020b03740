"""Plans of archive runs on stores that are written record by record, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.built_store import BuiltStore
from tidemark.archive.manifest import ArchivedQueue, ArchiveManifest, StoreIdentity
from tidemark.archive.options import ArchiveOptions
from tidemark.archive.plan import OffsetRange, Plan, make_plan
from tidemark.errors import ArgumentIllegalError, StoreClosedError, StoreContradictionError, TopicNotFoundError
from tidemark.read.store_reader import StoreReader

FILE_SIZE = 1024


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store with sixty messages in two alternating queues over several log files, and a batch."""
    built = BuiltStore(tmp_path / "store", log_file_size=FILE_SIZE)
    built.topic("orders", queues=2)
    built.topic("batches", batch=True)
    built.append_batch("batches", [(b"%d" % i, {}, 0) for i in range(5)])
    for number in range(60):
        built.append("orders", b"x" * 50, queue_id=number % 2)
    built.publish()
    return built


def plan(store: BuiltStore, before: ArchiveManifest | None = None, **options: Any) -> Plan:
    reader = StoreReader(store.root, refresh_s=0)
    try:
        return make_plan(reader, ArchiveOptions(**options), before)
    finally:
        reader.watermarks.close()


def manifest(*queues: ArchivedQueue, **changes: Any) -> ArchiveManifest:
    identity = StoreIdentity(store_name="tidemark-0", log_file_size=FILE_SIZE, term=0)
    given = {"written_by": "test", "written_ms": 0, "store": identity, "physical_end": 0, "queues": queues}
    return ArchiveManifest(**{**given, **changes})


def queue(topic: str, queue_id: int, following: int, **facts: Any) -> ArchivedQueue:
    return ArchivedQueue(topic=topic, queue_id=queue_id, first=0, next=following, rows=following, **facts)


def expire(store: BuiltStore, below: int) -> None:
    for start in range(0, below, FILE_SIZE):
        (store.root / "commitlog" / f"{start:020d}").unlink()


def test_a_plan_of_all_records_ends_at_the_watermark(store: BuiltStore) -> None:
    """Every queue starts at its beginning; batches are counted by messages."""
    found = plan(store, all_records=True)
    assert found.stretches == [
        OffsetRange("batches", 0, 0, 5),
        OffsetRange("orders", 0, 0, 30),
        OffsetRange("orders", 1, 0, 30),
    ]
    assert (found.start, found.end, found.lost) == (0, store.end, [])


def test_a_plan_of_sealed_records_ends_before_the_file_of_the_watermark(store: BuiltStore) -> None:
    """A preallocated file seals nothing, and neither does data past the watermark."""
    store.write_log(store.end - store.end % FILE_SIZE + FILE_SIZE, b"")
    end = store.end - store.end % FILE_SIZE
    found = plan(store)
    records = [store.append("orders", b"x" * 50) for _ in range(60)]
    assert records[-1].physical_offset // FILE_SIZE > end // FILE_SIZE
    assert (found.end, plan(store)) == (end, found)
    sealed = sum(one.next - one.first for one in found.stretches if one.topic == "orders")
    in_last_file = [n for n in range(60) if _places(store)[n] >= end]
    assert sealed == 60 - len(in_last_file) > 0


def _places(store: BuiltStore) -> list[int]:
    """Return the position of each message of `orders`, from its units."""
    reader = StoreReader(store.root, refresh_s=0)
    units = [reader.queue("orders", n).run.read(0, 30)["physical_offset"].tolist() for n in range(2)]
    reader.watermarks.close()
    return [place for pair in zip(*units, strict=True) for place in pair]


def test_a_plan_continues_at_the_end_of_the_archive(store: BuiltStore) -> None:
    """Queues that are new to the archive start at their beginning."""
    found = plan(store, manifest(queue("orders", 0, 12), queue("batches", 0, 5)), all_records=True)
    assert found.stretches == [OffsetRange("orders", 0, 12, 30), OffsetRange("orders", 1, 0, 30)]


def test_messages_that_expired_before_the_archive_run_are_lost(store: BuiltStore) -> None:
    """Messages that expired after they were archived are not lost, and a queue that was never archived has no loss."""
    places = _places(store)
    expire(store, 2 * FILE_SIZE)
    kept = min(n for n in range(60) if places[n] >= 2 * FILE_SIZE)
    first = [-(-(kept - n) // 2) for n in range(2)]
    assert 2 < first[0] < 20
    found = plan(store, manifest(queue("orders", 0, 2)), all_records=True)
    assert found.lost == [OffsetRange("orders", 0, 2, first[0])]
    assert found.stretches == [OffsetRange("orders", 0, first[0], 30), OffsetRange("orders", 1, first[1], 30)]
    assert plan(store, manifest(queue("orders", 0, 20)), all_records=True).lost == []


def test_a_plan_selects_topics_by_name_or_pattern(store: BuiltStore) -> None:
    """A pattern matches whole names."""
    store.topic("orders-eu")
    store.append("orders-eu")
    store.publish()
    named = {one.topic for one in plan(store, all_records=True, topics=("batches",)).stretches}
    matching = {one.topic for one in plan(store, all_records=True, topic_pattern="order.").stretches}
    both = {one.topic for one in plan(store, all_records=True, topics=("batches",), topic_pattern=".*-eu").stretches}
    assert (named, matching, both) == ({"batches"}, {"orders"}, {"batches", "orders-eu"})
    with pytest.raises(TopicNotFoundError):
        plan(store, topics=("nobody",))
    with pytest.raises(ArgumentIllegalError, match="not a regular expression"):
        plan(store, topic_pattern="(")


@pytest.mark.parametrize(
    ("queues", "changes", "said"),
    [
        ([], {"physical_end": 1 << 40}, "ends at"),
        ([], {"store": StoreIdentity(store_name="other", log_file_size=FILE_SIZE, term=0)}, "belongs to store other"),
        ([], {"store": StoreIdentity(store_name="tidemark-0", log_file_size=1, term=0)}, "log files of 1 bytes"),
        ([queue("orders", 0, 31)], {}, "the store only up to 30"),
        ([queue("orders", 1, 3, last_queue_offset=2, last_physical_offset=77)], {}, "has message 2 of queue 1"),
    ],
)
def test_the_archive_of_another_store_is_refused(
    store: BuiltStore, queues: list[ArchivedQueue], changes: dict[str, Any], said: str
) -> None:
    """The manifest's entry of the log, or of a queue, differs."""
    with pytest.raises(StoreContradictionError, match=said):
        plan(store, manifest(*queues, **changes))


def test_the_last_archived_message_may_still_exist_or_be_expired(store: BuiltStore) -> None:
    """If the store no longer has the message, there is nothing to compare."""
    places = _places(store)
    known = queue("orders", 1, 3, last_queue_offset=2, last_physical_offset=places[5])
    assert OffsetRange("orders", 1, 3, 30) in plan(store, manifest(known), all_records=True).stretches
    expire(store, 2 * FILE_SIZE)
    assert plan(store, manifest(queue("orders", 1, 3, last_queue_offset=2, last_physical_offset=7))).lost


def test_a_plan_of_a_store_without_an_index_is_refused(tmp_path: Path) -> None:
    """Otherwise the archive would be empty without an explanation."""
    built = BuiltStore(tmp_path / "store", marked=False)
    built.topic("orders")
    built.append("orders")
    with pytest.raises(StoreClosedError, match="has no index"):
        plan(built)
