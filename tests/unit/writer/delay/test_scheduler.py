"""The scheduler: its reads, its retries and its saved offsets, with small fakes of queues and log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from services.writer.delay.delivery import DeliveryOutcome
from services.writer.delay.level import DelayLevel
from services.writer.delay.schedule_reader import DueMessage, Look
from services.writer.delay.scheduler import Scheduler
from tidemark.errors import CorruptStoreError, DiskFullError
from tidemark.store.originals.delay_offsets import DelayOffsets, load_delay_offsets, save_delay_offsets
from tidemark.store.paths import StorePaths
from tidemark.store.storage import DiskStorage

END = 1_000  # of the log


class FakeQueues:
    """Messages by level; those above *visible* are not indexed. Records the levels that are read."""

    def __init__(self, dues: Mapping[int, Sequence[int]]) -> None:
        self.dues = dues
        self.now_visible = END
        self.broken: set[int] = set()
        self.looks: list[int] = []

    def watermark(self) -> int:
        return self.now_visible

    def look(self, level: int, queue_offset: int, now_ms: int) -> Look:
        self.looks.append(level)
        if level in self.broken:
            raise CorruptStoreError("injected damage")
        dues = self.dues.get(level, ()) if self.now_visible == END else ()
        count = sum(due <= now_ms for due in dues[queue_offset:])
        messages = [DueMessage(number, level, None) for number in range(queue_offset, queue_offset + count)]
        behind = queue_offset + count
        next_due_ms = dues[behind] if behind < len(dues) else None
        return Look(self.now_visible, 0, len(dues), messages, behind, next_due_ms)


class FakeDelivery:
    """Records (level, queue offset) of deliveries; refuses the first *refusals* calls after *first* messages."""

    def __init__(self) -> None:
        self.end_offset = 0
        self.counts: dict[str, int] = {}
        self.delivered: list[tuple[int, int]] = []
        self.refusals = 0

    def is_flushed(self, end_offset: int) -> bool:
        return True

    async def deliver(self, messages: Sequence[DueMessage]) -> DeliveryOutcome:
        done = len(messages)
        if messages and self.refusals:
            self.refusals -= 1
            done = 1
        self.delivered += [(message.physical_offset, message.queue_offset) for message in messages[:done]]
        return DeliveryOutcome(done, None if done == len(messages) else DiskFullError("injected"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return StorePaths(tmp_path).delay_offsets


def run(
    path: Path,
    queues: FakeQueues,
    delivery: FakeDelivery,
    *,
    until: Callable[[], bool] = lambda: False,
    seconds: float = 20,
    meanwhile: Callable[[], None] = lambda: None,
    save_interval_ms: int = 3_600_000,
) -> None:
    """Run a scheduler until *until* holds, or for *seconds*; then stop and save."""

    async def serve() -> None:
        scheduler = Scheduler(
            lambda: queues,
            delivery,
            path,
            DiskStorage(),
            next_offsets={level: len(dues) for level, dues in queues.dues.items()},
            log_end=END,
            save_interval_ms=save_interval_ms,
        )
        scheduler.start()
        deadline = time.monotonic() + seconds
        while not until() and time.monotonic() < deadline:
            await asyncio.sleep(0.005)
            meanwhile()
        await scheduler.stop()
        await scheduler.save()

    asyncio.run(serve())


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_only_levels_with_pending_messages_are_read(path: Path) -> None:
    """Other levels, and those that the file marks as done, are never read."""
    save_delay_offsets(path, DelayOffsets(1, {2: 3}), DiskStorage())
    queues, delivery = FakeQueues({1: [0, 0], 2: [0, 0, 0], 5: [0]}), FakeDelivery()
    run(path, queues, delivery, until=lambda: len(delivery.delivered) == 3)
    assert delivery.delivered == [(1, 0), (1, 1), (5, 0)]
    assert set(queues.looks) == {1, 5}
    assert load_delay_offsets(path) == DelayOffsets(2, {1: 2, 2: 3, 5: 1})


def test_a_clock_set_back_does_not_delay_saving_the_offsets(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets are saved within the interval, not an hour later: after a kill all would be looked up again."""
    queues, delivery = FakeQueues({1: [0]}), FakeDelivery()
    saved: list[DelayOffsets] = []

    def set_back() -> None:
        if delivery.delivered:
            monkeypatch.setattr("services.writer.delay.scheduler._now_ms", lambda: now_ms() - 3_600_000)
        if path.exists():
            saved.append(load_delay_offsets(path))

    run(path, queues, delivery, until=lambda: bool(saved), meanwhile=set_back, save_interval_ms=50, seconds=5)
    assert saved[:1] == [DelayOffsets(1, {1: 1})]


def test_without_pending_messages_no_level_is_read(path: Path) -> None:
    """No file is written."""
    queues = FakeQueues({})
    run(path, queues, FakeDelivery(), seconds=0.1)
    assert (queues.looks, path.exists()) == ([], False)


def test_the_scheduler_sleeps_until_the_next_message_is_due(path: Path) -> None:
    """It reads once before, to learn the time, and once when it is due."""
    due = now_ms() + 300
    queues, delivery = FakeQueues({4: [due]}), FakeDelivery()
    run(path, queues, delivery, until=lambda: bool(delivery.delivered))
    assert queues.looks == [4, 4]
    assert due <= now_ms() < due + 250


def test_the_scheduler_waits_for_the_watermark_without_reading(path: Path) -> None:
    """Messages that are not indexed cannot be seen: the queue is read when the watermark has moved."""
    queues, delivery = FakeQueues({1: [0]}), FakeDelivery()
    queues.now_visible = END - 1
    run(path, queues, delivery, seconds=0.3)
    assert queues.looks == [1]

    def publish() -> None:
        if len(queues.looks) == 2:  # the second run has looked in vain
            queues.now_visible = END

    run(path, queues, delivery, until=lambda: bool(delivery.delivered), meanwhile=publish)
    assert delivery.delivered == [(1, 0)]
    assert queues.looks == [1, 1, 1]


def test_pauses_between_reads_grow_to_a_second() -> None:
    """They grow while the watermark does not move, and restart when it does."""
    level, pauses = DelayLevel(1, end=END), []
    level.plan(Look(0, 0, 0), 0)
    for _ in range(9):
        pauses.append(level.look_ms)
        level.pause(0)
    assert pauses == [10, 20, 40, 80, 160, 320, 640, 1000, 1000]
    level.plan(Look(1, 0, 0), 5_000)
    assert (level.look_ms, level.is_blind) == (5_010, True)
    level.plan(Look(END, 0, 0), 5_000)
    assert (level.look_ms, level.is_blind) == (None, False)


def test_a_due_time_too_far_ahead_is_treated_as_due() -> None:
    """The clock was set back since the time was set: RocketMQ's correctDeliverTimestamp."""
    level = DelayLevel(1, end=END, look_ms=100_000)
    assert [level.is_time(now) for now in (80_000, 90_000, 99_999, 100_000)] == [True, False, False, True]
    level.look_ms = None
    assert not level.is_time(0)


def test_a_refused_delivery_is_retried_from_where_it_stopped(path: Path) -> None:
    """The order stays, no message is repeated or left out; other levels continue meanwhile."""
    queues, delivery = FakeQueues({1: [0, 0, 0], 2: [0]}), FakeDelivery()
    delivery.refusals = 1
    run(path, queues, delivery, until=lambda: len(delivery.delivered) == 4)
    assert delivery.delivered == [(1, 0), (2, 0), (1, 1), (1, 2)]
    assert load_delay_offsets(path).table == {1: 3, 2: 1}


def test_a_failing_level_does_not_delay_the_others(path: Path) -> None:
    """The failure is reported, and the level is tried again later."""
    queues, delivery = FakeQueues({1: [0], 2: [0]}), FakeDelivery()
    queues.broken = {1}
    run(path, queues, delivery, until=lambda: bool(delivery.delivered))
    assert delivery.delivered == [(2, 0)]
    assert queues.looks.count(1) == 1


def test_a_saved_offset_beyond_the_queues_end_is_corrected(path: Path) -> None:
    """The file is from another log: new messages must not be left out."""
    save_delay_offsets(path, DelayOffsets(1, {1: 9, 2: 9}), DiskStorage())
    queues, delivery = FakeQueues({1: [0, 0]}), FakeDelivery()
    run(path, queues, delivery, seconds=0.05)
    assert load_delay_offsets(path).table == {1: 2, 2: 0}
    assert delivery.delivered == []
