from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from services.writer.batch.batch import QueueKey
from services.writer.delay.delivery import DelayedDelivery
from services.writer.delay.schedule_reader import DueMessage
from tests.builders import STORE_HOST, properties
from tests.unit.writer.opened_log import OpenedLog, SyncGate, opened_log
from tidemark.errors import FlushFailedError
from tidemark.format.record import Record


def due(number: int, *, topic: str | None = "orders", queue_id: str = "1", body: bytes = b"x") -> DueMessage:
    """Return a due message with a key of its own; topic: None for a record that names no destination."""
    named = {"UNIQ_KEY": f"key-{number}", "DELAY": "1"}
    if topic is not None:
        named |= {"REAL_TOPIC": topic, "REAL_QID": queue_id}
    record = Record(topic=b"SCHEDULE_TOPIC_XXXX", body=body, properties=properties(named))
    return DueMessage(number, 1000 * number, record)


def deliver(
    root: Path, check: Callable[[OpenedLog, DelayedDelivery], Awaitable[None]], disk: SyncGate | None = None
) -> None:
    async def run() -> None:
        async with opened_log(root, disk) as opened:
            await opened.topics.create("orders", queues=2, attributes={})
            await check(opened, DelayedDelivery(opened.log, opened.topics, STORE_HOST))

    asyncio.run(run())


def test_due_messages_are_delivered_to_their_queues_and_flushed(tmp_path: Path) -> None:
    async def check(opened: OpenedLog, delivery: DelayedDelivery) -> None:
        outcome = await delivery.deliver([due(0), due(1), due(2, queue_id="0")])
        assert (outcome.done, outcome.error, delivery.counts["delivered"]) == (3, None, 3)
        offsets = opened.store.recovered.offsets
        assert (offsets.next(QueueKey("orders", 1)), offsets.next(QueueKey("orders", 0))) == (2, 1)
        assert delivery.end_offset == opened.log.committed.offset
        assert delivery.is_flushed(delivery.end_offset)
        assert not delivery.is_flushed(delivery.end_offset + 1)

    deliver(tmp_path, check)


def test_a_repeated_delivery_stores_no_second_copy(tmp_path: Path) -> None:
    async def check(opened: OpenedLog, delivery: DelayedDelivery) -> None:
        await delivery.deliver([due(0)])
        assert (await delivery.deliver([due(0), due(1)])).done == 2
        assert (delivery.counts["delivered"], delivery.counts["repeated"]) == (2, 1)
        assert opened.store.recovered.offsets.next(QueueKey("orders", 1)) == 2

    deliver(tmp_path, check)


@pytest.mark.parametrize(
    "message",
    [
        DueMessage(0, 0, None, "BODY_CRC"),
        due(0, topic=None),
        due(0, queue_id="x"),
        due(0, topic="missing"),
        due(0, topic="SCHEDULE_TOPIC_XXXX"),
        due(0, body=b"x" * (1 << 16)),
    ],
    ids=["unreadable", "no topic", "no queue", "an unknown topic", "the schedule itself", "too large for a file"],
)
def test_a_message_that_cannot_be_delivered_does_not_stop_the_others(tmp_path: Path, message: DueMessage) -> None:
    async def check(opened: OpenedLog, delivery: DelayedDelivery) -> None:
        outcome = await delivery.deliver([message, due(1)])
        assert (outcome.done, outcome.error) == (2, None)
        assert (delivery.counts["stepped_over"], delivery.counts["delivered"]) == (1, 1)

    deliver(tmp_path, check)


def test_a_message_from_before_its_topic_was_deleted_is_not_delivered(tmp_path: Path) -> None:
    """A topic of the same name may exist again: the message was for the deleted one."""

    async def check(opened: OpenedLog, delivery: DelayedDelivery) -> None:
        async def ends() -> tuple[int, dict[int, int]]:
            return 1500, {}

        await opened.topics.delete("orders", ends)
        await opened.topics.create("orders", queues=2, attributes={})
        await delivery.deliver([due(1), due(2)])
        assert (delivery.counts["stepped_over"], delivery.counts["delivered"]) == (1, 1)

    deliver(tmp_path, check)


def test_messages_that_the_log_refuses_are_not_counted_as_delivered(tmp_path: Path) -> None:
    disk = SyncGate()

    async def check(opened: OpenedLog, delivery: DelayedDelivery) -> None:
        disk.fails = True
        for _ in range(2):  # the first is answered by the failure, the second is refused at once
            outcome = await delivery.deliver([due(0), due(1)])
            assert outcome.done == 0
            assert isinstance(outcome.error, FlushFailedError)
        assert delivery.counts["delivered"] == 0

    deliver(tmp_path, check, disk)
