"""Received batches go to one appender at a time, in order."""

from __future__ import annotations

import threading

import pytest

from services.writer.batch.batch import Batch, QueueKey, Wrapper
from services.writer.batch.record_encoder import u8
from services.writer.log.inbox import Inbox

LITTLE = 10_000  # bytes


def batch(size: int = 100) -> Batch:
    return Batch(QueueKey("t", 0), u8(b"\x01t"), u8(bytes(size)), 1, size, Wrapper(bytes(8), 0), b"", u8(b""))


def take_in_thread(inbox: Inbox) -> tuple[threading.Thread, list[list[object] | None]]:
    """Start a thread that takes once; return it and its result."""
    taken: list[list[object] | None] = []
    thread = threading.Thread(target=lambda: taken.append(inbox.take()))  # type: ignore[arg-type]
    thread.start()
    return thread, taken


def test_take_little_returns_batches_in_order_and_blocks_the_appender() -> None:
    inbox = Inbox()
    first, second, third = batch(), batch(), batch()
    thread, taken = take_in_thread(inbox)
    inbox.add(first)
    inbox.add(second)
    assert inbox.take_little(LITTLE) == [first, second]
    inbox.put(third)  # as from another thread: the taking thread is woken, and must wait
    thread.join(0.2)
    assert thread.is_alive()
    assert inbox.take_little(LITTLE) == []
    inbox.give_back()
    thread.join(10)
    assert taken == [[third]]


def test_a_late_appender_thread_waits_until_the_batches_are_given_back() -> None:
    """Neither its first check nor its check of a closed inbox may let it append concurrently."""
    inbox = Inbox()
    inbox.add(batch())
    assert inbox.take_little(LITTLE)
    thread, taken = take_in_thread(inbox)
    inbox.put(batch())
    inbox.close()
    thread.join(0.2)
    assert thread.is_alive()
    inbox.give_back()
    thread.join(10)
    assert [len(items or []) for items in taken] == [1]


def test_a_batch_taken_alone_blocks_both_consumers_until_it_is_given_back() -> None:
    inbox = Inbox()
    assert inbox.take_alone(batch(), LITTLE)
    assert not inbox.take_alone(batch(), LITTLE)
    thread, taken = take_in_thread(inbox)
    second = batch()
    inbox.put(second)
    thread.join(0.2)
    assert thread.is_alive()
    assert inbox.take_little(LITTLE) == []
    inbox.give_back()
    thread.join(10)
    assert taken == [[second]]


def test_a_batch_is_not_taken_alone_if_others_wait_or_it_is_large_or_the_inbox_is_closed() -> None:
    inbox = Inbox()
    assert not inbox.take_alone(batch(LITTLE), LITTLE)
    waiting = batch()
    inbox.add(waiting)
    assert not inbox.take_alone(batch(), LITTLE)
    assert inbox.take_little(LITTLE) == [waiting]
    inbox.give_back()
    inbox.close()
    assert not inbox.take_alone(batch(), LITTLE)


def test_take_little_returns_nothing_while_the_appender_works() -> None:
    inbox = Inbox()
    inbox.put(batch())
    assert inbox.take()
    second = batch()
    inbox.add(second)
    assert inbox.take_little(LITTLE) == []
    inbox.give_back()
    assert inbox.take_little(LITTLE) == [second]


@pytest.mark.parametrize("items", [[], [batch(LITTLE)], [batch(6_000), batch(6_000)], [batch(), lambda: None]])
def test_large_batches_and_tasks_are_left_to_the_appender(items: list[Batch]) -> None:
    inbox = Inbox()
    for item in items:
        inbox.add(item)
    assert inbox.take_little(LITTLE) == []
    inbox.close()
    assert inbox.take() == (items or None)


def test_a_discarded_inbox_returns_nothing() -> None:
    inbox = Inbox()
    inbox.add(batch())
    inbox.discard()
    assert inbox.take_little(LITTLE) == []
    assert inbox.take() is None
