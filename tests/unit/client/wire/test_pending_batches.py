"""Batches in flight: the times at which frames are sent, and their contents."""

from __future__ import annotations

import time

from tidemark.client.wire.pending_batches import Pending, PendingBatches, PendingLimits, Repeat
from tidemark.errors import UnavailableError
from tidemark.v1.commit_log_pb2 import AppendBatchRequest

_HOUR_S = 3600.0
LIMITS = PendingLimits(1 << 20, 1000)


def batches(count: int, size: int = 100, *, left_s: float = _HOUR_S) -> list[Pending]:
    return [Pending(AppendBatchRequest(topic="t"), b"", size, time.monotonic() + left_s) for _ in range(count)]


def given(pending: PendingBatches, made: list[Pending]) -> list[Pending]:
    for batch in made:
        pending.add(batch)
    return made


def test_a_batch_is_sent_immediately_when_none_is_in_flight() -> None:
    """One batch is a frame."""
    pending = PendingBatches(LIMITS)
    assert not pending.has_frame
    given(pending, batches(1))
    assert pending.has_frame
    assert len(pending.take_frame()) == 1
    assert not pending.has_frame


def test_as_many_batches_are_collected_as_are_in_flight() -> None:
    """Then they share a frame."""
    pending = PendingBatches(LIMITS)
    given(pending, batches(3))
    pending.take_frame()
    given(pending, batches(2))
    assert not pending.has_frame
    given(pending, batches(1))
    assert pending.has_frame
    assert len(pending.take_frame()) == 3


def test_a_large_batch_is_sent_without_waiting_for_an_answer() -> None:
    """A large batch is sent after any number of small ones."""
    pending = PendingBatches(LIMITS)
    given(pending, batches(10))
    pending.take_frame()
    given(pending, batches(1, 64 << 10))
    assert pending.has_frame


def test_an_answer_releases_the_collected_batches() -> None:
    """An error is an answer too: the refused batch is no longer in flight."""
    pending = PendingBatches(LIMITS)
    first, second = given(pending, batches(2))
    pending.take_frame()
    given(pending, batches(1))
    assert not pending.has_frame
    pending.settle(first.correlation_id)
    assert pending.has_frame
    pending.delay(second, due=0.0)
    assert pending.wake_delayed(1.0)
    assert len(pending.take_frame()) == 2


def test_expired_batches_do_not_delay_waiting_batches() -> None:
    """The expired batches may be in flight or not."""
    pending = PendingBatches(LIMITS)
    given(pending, batches(3, left_s=-1))
    pending.take_frame()
    (late,) = given(pending, batches(1, 64 << 10, left_s=-1))
    waiting = given(pending, batches(1))
    assert late in pending.expire(time.monotonic())
    assert pending.has_frame
    assert [entry.correlation_id for entry in pending.take_frame()] == [waiting[0].correlation_id]


def test_a_broken_stream_makes_all_batches_ready_in_order() -> None:
    """Nothing is in flight on the next stream."""
    pending = PendingBatches(LIMITS)
    sent = given(pending, batches(3))
    pending.take_frame()
    waiting = given(pending, batches(1))
    pending.stream_broke(UnavailableError("gone"))
    assert pending.has_frame
    order = [entry.correlation_id for entry in pending.take_frame()]
    assert order == [batch.correlation_id for batch in [*sent, *waiting]]
    assert pending.drain() == [*sent, *waiting]
    assert not pending.has_frame


def test_a_broken_stream_gives_up_sent_batches_that_must_not_repeat() -> None:
    """Only a batch that was already sent is given up."""
    pending = PendingBatches(LIMITS)
    made = batches(3)
    made[0].repeat = made[2].repeat = Repeat.NEVER
    given(pending, made[:2])
    pending.take_frame()
    given(pending, made[2:])
    assert pending.stream_broke(UnavailableError("gone")) == [made[0]]
    assert [entry.correlation_id for entry in pending.take_frame()] == [made[n].correlation_id for n in (1, 2)]


def test_only_unsent_batches_may_move_to_another_writer() -> None:
    """Batches that a broken stream carried stay with their writer."""
    pending = PendingBatches(LIMITS)
    made = batches(4)
    for batch in made[:3]:
        batch.repeat = Repeat.ELSEWHERE
    given(pending, made[:1])
    pending.take_frame()
    given(pending, made[1:])
    pending.stream_broke(UnavailableError("gone"))
    pending.delay(made[2], due=0.0)
    assert pending.take_movable() == [made[1], made[2]]
    order = [entry.correlation_id for entry in pending.take_frame()]
    assert order == [made[0].correlation_id, made[3].correlation_id]
    assert pending.messages_in_flight == 2


def test_room_is_limited_by_bytes_and_by_messages() -> None:
    """A larger batch is sent if nothing else is in flight."""
    pending = PendingBatches(PendingLimits(max_bytes=250, max_messages=3))
    assert pending.have_room(1000, 1000)
    given(pending, batches(1))
    assert pending.have_room(150, 2)
    assert not pending.have_room(151, 1)
    assert not pending.have_room(1, 3)
