from __future__ import annotations

from dataclasses import replace

import pytest

from services.writer.batch.batch import Batch, Delay, QueueKey
from tests.unit.writer.batches import batch_of

SCHEDULE = QueueKey("SCHEDULE_TOPIC_XXXX", 2)
MESSAGE = batch_of(b"a", key="k")


def tried(batch: Batch, times: int) -> Batch:
    return replace(batch, wrapper=batch.wrapper._replace(reconsume_times=times))


def delayed_to(topic: str) -> Batch:
    return replace(MESSAGE, key=SCHEDULE, delay=Delay(3, topic, 0))


def test_readers_find_a_message_in_its_topic_and_a_delayed_one_in_its_destination() -> None:
    assert MESSAGE.readers_topic == "orders"
    assert delayed_to("payments").readers_topic == "payments"


SAME: dict[str, tuple[Batch, Batch]] = {
    "another queue": (MESSAGE, batch_of(b"a", key="k", queue_id=3)),
    "another body": (MESSAGE, batch_of(b"b", key="k")),
    "the same destination": (delayed_to("orders"), delayed_to("orders")),
}
DIFFERENT: dict[str, tuple[Batch, Batch]] = {
    "another key": (MESSAGE, batch_of(b"a", key="other")),
    "another topic": (MESSAGE, batch_of(b"a", key="k", topic="payments")),
    "a later try": (MESSAGE, tried(MESSAGE, 1)),
    "another destination": (delayed_to("orders"), delayed_to("payments")),
    "the delivery of a delayed message": (delayed_to("orders"), MESSAGE),
}


@pytest.mark.parametrize("case", SAME)
def test_repeat_shares_the_repeat_key_whatever_its_queue_and_content(case: str) -> None:
    """A content that differs is found later, and is a conflict."""
    first, second = SAME[case]
    assert first.repeat_key == second.repeat_key


@pytest.mark.parametrize("case", DIFFERENT)
def test_another_message_has_another_repeat_key(case: str) -> None:
    first, second = DIFFERENT[case]
    assert first.repeat_key != second.repeat_key


def test_every_batch_counts_as_in_flight_and_greater_ones_count_for_more() -> None:
    """Batches of a few bytes are bounded, too: each takes memory of its own."""
    small, great = batch_of(b"a"), batch_of(b"a" * 10_000)
    assert small.size > small.wire.size
    assert great.size - small.size == great.wire.size - small.wire.size
