"""Reads of a level's queue, in small stores written by struct alone."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from services.writer.delay.schedule_reader import DelayQueues
from tests.built_store import PRE_BLANK, BuiltStore, Written
from tidemark.store.paths import StorePaths

SCHEDULE = "SCHEDULE_TOPIC_XXXX"
NOW_MS = 1_700_000_100_000


class DelayedStore(BuiltStore):
    """A store whose schedule topic has units with times."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.topic(SCHEDULE, queues=18)

    def delay(self, due_ms: int, body: bytes = b"x", *, level: int = 1) -> Written:
        """Append one visible delayed message whose unit has the time *due_ms*."""
        written = self.append(SCHEDULE, body, queue_id=level - 1, unit=False)
        self.next[SCHEDULE, level - 1] = written.queue_offset + 1
        unit = struct.pack(">qiq", written.physical_offset, written.size, due_ms)
        self.write_units(SCHEDULE, level - 1, written.queue_offset, unit)
        self.publish()
        return written

    def queues(self) -> DelayQueues:
        return DelayQueues(StorePaths(self.root))


@pytest.fixture
def store(tmp_path: Path) -> DelayedStore:
    return DelayedStore(tmp_path)


def bodies(queues: DelayQueues, *, level: int = 1, offset: int = 0, now_ms: int = NOW_MS) -> list[bytes | None]:
    messages = queues.look(level, offset, now_ms).messages
    return [None if message.record is None else message.record.body for message in messages]


def test_due_messages_are_returned_in_order_with_the_next_due_time(store: DelayedStore) -> None:
    """The list ends at the first message that is not due and contains no messages of other levels."""
    for number, due_ms in enumerate((NOW_MS - 5, NOW_MS, NOW_MS + 1, NOW_MS + 2)):
        store.delay(due_ms, b"%d" % number)
    store.delay(NOW_MS, b"other", level=2)
    look = store.queues().look(1, 0, NOW_MS)
    assert [(message.queue_offset, message.record and message.record.body) for message in look.messages] == [
        (0, b"0"),
        (1, b"1"),
    ]
    assert (look.next_offset, look.next_due_ms, look.max_offset) == (2, NOW_MS + 1, 4)
    assert look.watermark == store.end
    assert bodies(store.queues(), offset=1) == [b"1"]


def test_messages_above_the_watermark_are_not_returned(store: DelayedStore) -> None:
    """The unit of the message exists already."""
    first = store.delay(NOW_MS, b"0")
    store.delay(NOW_MS, b"1")
    store.publish(first.physical_offset + first.size)
    look = store.queues().look(1, 0, NOW_MS)
    assert (len(look.messages), look.next_offset, look.next_due_ms) == (1, 1, None)


@pytest.mark.parametrize("level", [1, 18])
def test_a_missing_topic_or_queue_has_no_messages(tmp_path: Path, level: int) -> None:
    """There is no topic, or no queue."""
    built = BuiltStore(tmp_path)
    built.topic("t")
    for _ in range(2):
        look = DelayQueues(StorePaths(tmp_path)).look(level, 7, NOW_MS)
        assert (look.messages, look.next_offset, look.next_due_ms, look.max_offset) == ((), 7, None, 0)
        built.topic(SCHEDULE, queues=18)


def test_a_stored_due_time_beyond_the_levels_delay_is_treated_as_due(store: DelayedStore) -> None:
    """The clock was set back since: RocketMQ's correctDeliverTimestamp."""
    store.delay(NOW_MS + 1_001)
    store.delay(NOW_MS + 1_000)
    look = store.queues().look(1, 0, NOW_MS)
    assert (look.next_offset, look.next_due_ms) == (1, NOW_MS + 1_000)


def test_many_due_messages_are_returned_in_parts(store: DelayedStore) -> None:
    """Each part has a limited number of bytes, and the next part follows at once."""
    for _ in range(40):
        store.delay(NOW_MS, bytes(30_000))
    queues = store.queues()
    look = queues.look(1, 0, NOW_MS)
    assert 30 < len(look.messages) < 40
    assert look.next_due_ms is not None
    assert look.next_due_ms <= NOW_MS
    assert len(queues.look(1, look.next_offset, NOW_MS).messages) == 40 - len(look.messages)


def test_a_damaged_record_is_reported(store: DelayedStore) -> None:
    """It has a reason in place of a record; its neighbours are returned."""
    places = [store.delay(NOW_MS, b"body %d" % number).physical_offset for number in range(3)]
    store.write_log(places[1] + 90, b"?")
    look = store.queues().look(1, 0, NOW_MS)
    assert [message.fault for message in look.messages] == ["", "BODY_CRC", ""]
    assert bodies(store.queues()) == [b"body 0", None, b"body 2"]
    assert look.next_offset == 3


def test_holes_in_the_queue_are_skipped(store: DelayedStore) -> None:
    """A damaged record left units without a message."""
    store.delay(NOW_MS, b"0")
    store.write_units(SCHEDULE, 0, 1, PRE_BLANK)
    store.next[SCHEDULE, 0] = 2
    store.delay(NOW_MS, b"2")
    look = store.queues().look(1, 0, NOW_MS)
    assert [message.queue_offset for message in look.messages] == [0, 2]
    assert look.next_offset == 3


def test_a_read_of_expired_messages_begins_at_the_minimum_offset(tmp_path: Path) -> None:
    """The read begins at the remaining messages, and reports that."""
    store = DelayedStore(tmp_path)
    for _ in range(5):
        store.delay(NOW_MS, bytes(20_000))
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    look = store.queues().look(1, 0, NOW_MS)
    assert look.min_offset > 0
    assert look.messages[0].queue_offset == look.min_offset
    assert look.next_offset == 5
