from __future__ import annotations

import pytest

from tests.unit.client.received_messages import ORDERS, received
from tidemark.client.consumer.handout import Handout
from tidemark.client.consumer.queue_cursor import Cursor
from tidemark.client.received_message import TopicQueue

OTHER = TopicQueue("orders", 1)


def filled(queue: TopicQueue, first: int, count: int = 3) -> Cursor:
    """Return a cursor with *count* buffered messages."""
    cursor = Cursor(queue, first)
    messages = [received(offset, queue=queue) for offset in range(first, first + count)]
    cursor.add(messages, requested_offset=first, next_offset=first + count)
    return cursor


def lend(handout: Handout, cursor: Cursor, most: int = 99) -> None:
    handout.lend_of(cursor)
    cursor.take(most, lambda _: True, handout.messages)


@pytest.fixture
def cursors() -> tuple[Cursor, Cursor]:
    return filled(ORDERS, 0), filled(OTHER, 10)


def places(handout: Handout) -> list[tuple[int, int]]:
    return [(message.queue_id, message.queue_offset) for message in handout.settle()]


def test_a_settled_handout_moves_the_positions_past_its_messages(cursors: tuple[Cursor, Cursor]) -> None:
    handout = Handout()
    lend(handout, cursors[0])
    lend(handout, cursors[1], 1)
    assert places(handout) == [(0, 0), (0, 1), (0, 2), (1, 10)]
    assert [cursor.position for cursor in cursors] == [3, 11]


def test_a_returned_handout_moves_no_position_and_is_fetched_again(cursors: tuple[Cursor, Cursor]) -> None:
    handout = Handout()
    for cursor in cursors:
        lend(handout, cursor, 2)
    handout.give_back()
    assert [(cursor.position, cursor.fetch_at) for cursor in cursors] == [(0, 0), (10, 10)]


def test_a_seek_between_two_takes_invalidates_the_messages_of_both(cursors: tuple[Cursor, Cursor]) -> None:
    """The first state counts; the messages from the new place are fetched again."""
    handout = Handout()
    lend(handout, cursors[0], 1)
    cursors[0].seek(40)
    cursors[0].add([received(40)], requested_offset=40, next_offset=41)
    lend(handout, cursors[0], 1)
    assert places(handout) == []
    assert cursors[0].position == 40


def test_messages_of_a_queue_with_a_concurrent_seek_are_not_handed_out(cursors: tuple[Cursor, Cursor]) -> None:
    handout = Handout()
    for cursor in cursors:
        lend(handout, cursor, 1)
    cursors[0].seek(40)
    assert places(handout) == [(1, 10)]
    assert [cursor.position for cursor in cursors] == [40, 11]


def test_giving_back_after_a_seek_keeps_the_position_of_the_seek(cursors: tuple[Cursor, Cursor]) -> None:
    handout = Handout()
    lend(handout, cursors[0], 1)
    cursors[0].seek(40)
    handout.give_back()
    assert cursors[0].position == 40


def test_settling_reports_the_queues_whose_messages_became_invalid(cursors: tuple[Cursor, Cursor]) -> None:
    """A table has no single messages that could be left out, so its caller leaves out the queue's pages."""
    handout = Handout()
    for cursor in cursors:
        lend(handout, cursor)
    cursors[1].restart()
    assert handout.settle_queues() == {OTHER}
