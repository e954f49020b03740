"""InWork: a queue's progress while several of its messages are handled concurrently."""

from __future__ import annotations

import threading

from tidemark.client.consumer.messages_in_progress import InWork
from tidemark.client.received_message import TopicQueue

Q0, Q1 = TopicQueue("orders", 0), TopicQueue("orders", 1)


def begun(*offsets: int) -> InWork:
    in_work = InWork()
    for offset in offsets:
        in_work.begin(Q0, offset)
    return in_work


def test_an_unfinished_message_holds_its_queue_back() -> None:
    """Later messages may be finished already."""
    in_work = begun(3, 4, 5)
    in_work.finish(Q0, 4)
    in_work.finish(Q0, 5)
    assert in_work.first_unfinished() == {Q0: 3}
    in_work.finish(Q0, 3)
    assert in_work.first_unfinished() == {}


def test_a_wait_for_room_ends_when_a_message_finishes() -> None:
    """The wait reports if there is none."""
    in_work = begun(1, 2)
    assert not in_work.wait_below(2, 0.01)
    threading.Timer(0.05, in_work.finish, (Q0, 1)).start()
    assert in_work.wait_below(2, 10)
    assert in_work.count == 1


def test_messages_of_a_forgotten_queue_are_not_counted() -> None:
    """Messages of it that finish later do not count either."""
    in_work = begun(1, 2)
    in_work.begin(Q1, 7)
    in_work.forget([Q0])
    assert (in_work.count, in_work.first_unfinished()) == (1, {Q1: 7})
    in_work.finish(Q0, 1)
    assert in_work.count == 1


def test_draining_waits_for_the_given_queues_only() -> None:
    """Other queues may continue."""
    in_work = begun(1)
    in_work.begin(Q1, 7)
    threading.Timer(0.05, in_work.finish, (Q0, 1)).start()
    in_work.drain([Q0], 10)
    assert in_work.first_unfinished() == {Q1: 7}
