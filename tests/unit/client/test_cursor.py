"""Cursor: positions go past what was handed out and what was filtered, never further."""

from __future__ import annotations

from tidemark.client.cursor import Cursor
from tidemark.client.received import ReceivedMessage, TopicQueue

QUEUE = TopicQueue("orders", 0)


def message(queue_offset: int) -> ReceivedMessage:
    return ReceivedMessage(*QUEUE, queue_offset, b"x", None, (), {}, None, None, 0, 0, 0, 0, 0, 0, "", "")


def add(cursor: Cursor, offsets: list[int], *, requested: int, following: int) -> None:
    cursor.add(
        [message(offset) for offset in offsets], requested_offset=requested, next_offset=following, max_offset=99
    )


def anything(_: ReceivedMessage) -> bool:
    return True


def test_a_position_is_behind_the_last_message_handed_out() -> None:
    """Not behind what is only buffered."""
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5, 6, 7], requested=5, following=8)
    assert [m.queue_offset for m in cursor.take(2, anything)] == [5, 6]
    assert (cursor.position, cursor.fetch_at) == (7, 8)


def test_a_used_up_page_moves_the_position_to_its_end() -> None:
    """Past what the service filtered out behind the last message."""
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5], requested=5, following=20)
    cursor.take(1, anything)
    assert cursor.position == 20


def test_an_empty_page_behind_others_waits_for_them() -> None:
    """Its end is no position as long as messages before it are buffered."""
    cursor = Cursor(QUEUE, 0)
    add(cursor, [0], requested=0, following=1)
    add(cursor, [], requested=1, following=9)
    assert (cursor.position, cursor.fetch_at) == (0, 9)
    cursor.take(1, anything)
    assert cursor.position == 9


def test_messages_that_are_not_wanted_do_not_count() -> None:
    """The position goes past them all the same."""
    cursor = Cursor(QUEUE, 0)
    add(cursor, [0, 1, 2, 3], requested=0, following=4)
    assert [m.queue_offset for m in cursor.take(2, lambda m: m.queue_offset % 2 == 1)] == [1, 3]
    assert cursor.position == 4


def test_a_named_place_becomes_a_number_with_the_first_answer() -> None:
    """Earliest is what the service says it is."""
    cursor = Cursor(QUEUE, "earliest")
    add(cursor, [], requested=17, following=17)
    assert (cursor.position, cursor.fetch_at) == (17, 17)


def test_seeking_forgets_what_is_buffered() -> None:
    """What comes next is what was sought."""
    cursor = Cursor(QUEUE, 0)
    add(cursor, [0, 1], requested=0, following=2)
    cursor.seek(40)
    assert (cursor.position, cursor.fetch_at, cursor.is_empty) == (40, 40, True)
