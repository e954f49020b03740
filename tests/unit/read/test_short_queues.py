"""Many queues that are read together give the records of a pull of each, or are left to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.built_store import PRE_BLANK, BuiltStore, Written
from tests.page_cache import require_refused
from tidemark.format.queue_reads import MOST_UNITS
from tidemark.read.pull import PullRequest, pull
from tidemark.read.short_queues import ShortQueue, ShortQueues, StoredRecords
from tidemark.read.store_reader import StoreReader

MANY = 1 << 20
QUEUES = [("orders", 0), ("orders", 1), ("payments", 0), ("payments", 2)]
EACH = 30


@pytest.fixture
def store(tmp_path: Path) -> BuiltStore:
    """Return a store whose queues have records in turn, of several sizes, in several files of the log."""
    store = BuiltStore(tmp_path, log_file_size=16_384)
    store.topic("orders", queues=2)
    store.topic("payments", queues=3)
    for number in range(EACH * len(QUEUES)):
        topic, queue_id = QUEUES[number % len(QUEUES)]
        store.append(topic, b"%d" % number * (1 + number % 90), queue_id=queue_id)
    store.publish()
    return store


class Reading:
    """Reads the queues of a store together, and each by itself."""

    def __init__(self, store: BuiltStore) -> None:
        self.reader = StoreReader(store.root)

    def short(self, topic: str, queue_id: int, offset: int = 0, most: int = MANY) -> ShortQueue:
        queue = self.reader.queue(topic, queue_id)
        end = self.reader.bounds(queue, self.reader.watermark()).units.end
        units = queue.run.range(offset, end - offset)
        assert units is not None
        return ShortQueue(queue.record_topic, queue_id, offset, units, most)

    def together(self, *queues: ShortQueue, messages: int = MANY, size: int = MANY) -> list[StoredRecords]:
        return ShortQueues(self.reader.log, size).read(queues, most_messages=messages, most_bytes=size)

    def alone(self, topic: str, queue_id: int, offset: int = 0, messages: int = MANY, size: int = MANY) -> bytes:
        queue = self.reader.queue(topic, queue_id)
        bounds = self.reader.bounds(queue, self.reader.watermark())
        request = PullRequest(offset, messages, size, whole_records=True)
        result = pull(queue, self.reader.log, bounds, request)
        return b"".join(part.records.stored_bytes() for part in result.parts)


def test_each_queue_has_the_records_of_its_pull(store: BuiltStore) -> None:
    reading = Reading(store)
    found = reading.together(*(reading.short(*place) for place in QUEUES))
    assert [one.messages for one in found] == [EACH] * len(QUEUES)
    assert [bytes(one.data) for one in found] == [reading.alone(*place) for place in QUEUES]


def test_each_queue_is_read_from_its_offset_and_up_to_its_own_limit(store: BuiltStore) -> None:
    reading = Reading(store)
    found = reading.together(reading.short("orders", 0, 7, most=5), reading.short("orders", 1, 29, most=5))
    assert [one.messages for one in found] == [5, 1]
    assert bytes(found[0].data) == reading.alone("orders", 0, 7, messages=5)
    assert bytes(found[1].data) == reading.alone("orders", 1, 29)


@pytest.mark.parametrize("messages", [1, EACH - 1, EACH, EACH + 1, 3 * EACH + 4])
def test_the_limit_on_messages_is_of_all_queues(store: BuiltStore, messages: int) -> None:
    reading = Reading(store)
    found = reading.together(*(reading.short(*place) for place in QUEUES), messages=messages)
    assert [one.messages for one in found] == [EACH] * (messages // EACH) + [messages % EACH] * (messages % EACH > 0)


@pytest.mark.parametrize("size", [1, 200, 5_000, 20_000])
def test_the_limit_on_bytes_is_of_all_queues(store: BuiltStore, size: int) -> None:
    """The first record is read regardless of its size; then a queue that does not fit at all is left to its pull."""
    reading = Reading(store)
    found = reading.together(*(reading.short(*place) for place in QUEUES), size=size)
    left = size
    for place, one in zip(QUEUES, found, strict=False):
        assert bytes(one.data) == reading.alone(*place, size=left)
        left -= len(one.data)
    assert left >= 0
    assert len(found) == len(QUEUES) or left < len(reading.alone(*QUEUES[len(found)], size=1)) or not found


def test_several_reads_fill_one_buffer(store: BuiltStore) -> None:
    reading = Reading(store)
    queues = ShortQueues(reading.reader.log, MANY)
    found = [queues.read([reading.short(*place)], most_messages=MANY, most_bytes=MANY)[0] for place in QUEUES]
    assert [bytes(one.data) for one in found] == [reading.alone(*place) for place in QUEUES]


Damage = Callable[[BuiltStore, Written, Written], None]
DAMAGE: dict[str, Damage] = {
    "body": lambda store, wrong, _: store.write_log(wrong.physical_offset + wrong.size - 3, b"\0wr"),
    "length": lambda store, wrong, _: store.write_log(wrong.physical_offset, b"\0\0\1\0"),
    "magic": lambda store, wrong, _: store.write_log(wrong.physical_offset + 4, b"\1\2\3\4"),
    "queue offset": lambda store, wrong, _: store.write_log(wrong.physical_offset + 20, b"\0\0\0\0\0\0\0\1"),
    "record of another queue": lambda store, wrong, other: store.write_unit(
        "orders", 1, wrong._replace(physical_offset=other.physical_offset, size=other.size), {}
    ),
    "unit without a record": lambda store, wrong, _: store.write_unit("orders", 1, wrong._replace(size=-7), {}),
    "unit beyond the log": lambda store, wrong, _: store.write_unit(
        "orders", 1, wrong._replace(physical_offset=1 << 40), {}
    ),
    "unit across two files": lambda store, wrong, _: store.write_unit(
        "orders", 1, wrong._replace(physical_offset=16_380), {}
    ),
    "blank unit": lambda store, wrong, _: store.write_units("orders", 1, wrong.queue_offset, PRE_BLANK),
    "missing log file": lambda store, wrong, _: (
        store.root / "commitlog" / f"{wrong.physical_offset // 16_384 * 16_384:020d}"
    ).unlink(),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_queue_is_left_to_its_pull(tmp_path: Path, kind: str) -> None:
    """The queues before it are read; so are those after it by another call."""
    store = BuiltStore(tmp_path, log_file_size=16_384)
    store.topic("orders", queues=3)
    other = store.append("orders", b"first")
    written = [store.append("orders", b"x" * 500, queue_id=1) for _ in range(40)]
    store.append("orders", b"last" * 4000, queue_id=2)
    store.publish()
    reading = Reading(store)
    queues = [reading.short("orders", queue_id) for queue_id in range(3)]
    assert len(reading.together(*queues)) == 3
    DAMAGE[kind](store, written[35], other)
    assert [bytes(one.data) for one in reading.together(*queues)] == [reading.alone("orders", 0)]
    assert [bytes(one.data) for one in reading.together(queues[2])] == [reading.alone("orders", 2)]


def test_queues_that_are_not_in_memory_are_left_to_their_pulls(store: BuiltStore) -> None:
    reading = Reading(store)
    queues = [reading.short(*place) for place in QUEUES]
    require_refused(lambda: reading.together(*queues) == [], store.root / "commitlog")


def test_a_long_queue_is_left_to_its_pull(tmp_path: Path) -> None:
    store = BuiltStore(tmp_path, units_a_file=MOST_UNITS + 1, log_file_size=1 << 20)
    store.topic("orders", queues=1)
    for _ in range(MOST_UNITS + 1):
        store.append("orders", b"")
    store.publish()
    reading = Reading(store)
    assert reading.together(reading.short("orders", 0)) == []
    assert reading.together(reading.short("orders", 0, 1))[0].messages == MOST_UNITS
