"""Cursor: a position moves over settled and filtered messages, and not further."""

from __future__ import annotations

import pytest

from tidemark.client.consumer.queue_cursor import Cursor
from tidemark.client.received_message import ReceivedMessage, TopicQueue

QUEUE = TopicQueue("orders", 0)


def message(queue_offset: int) -> ReceivedMessage:
    return ReceivedMessage(*QUEUE, queue_offset, b"x", None, (), {}, None, None, 0, 0, 0, 0, 0, 0, "", "")


def add(cursor: Cursor, offsets: list[int], *, requested: int, following: int) -> None:
    cursor.add([message(offset) for offset in offsets], requested_offset=requested, next_offset=following)


def take(cursor: Cursor, most: int) -> list[int]:
    taken: list[ReceivedMessage] = []
    cursor.take(most, lambda _: True, taken)
    return [message.queue_offset for message in taken]


@pytest.mark.parametrize("most", range(1, 8))
def test_without_a_function_all_messages_are_taken(most: int) -> None:
    """As with a function that wants all; pages have gaps, where the service left messages out."""
    taken, positions = [], []
    for is_wanted in (None, lambda _: True):
        cursor = Cursor(QUEUE, 5)
        add(cursor, [5, 6, 7], requested=5, following=8)
        add(cursor, [9, 10], requested=8, following=13)
        add(cursor, [], requested=13, following=14)
        into: list[ReceivedMessage] = []
        while not cursor.is_empty:
            before = len(into)
            cursor.take(most, is_wanted, into)
            assert 1 <= len(into) - before <= most
            assert cursor.settle(cursor.generation)
            positions.append((is_wanted is None, cursor.position))
        taken.append([message.queue_offset for message in into])
    assert taken == [[5, 6, 7, 9, 10]] * 2
    assert [place for is_all, place in positions if is_all] == [place for is_all, place in positions if not is_all]
    assert positions[-1][1] == 14


def test_take_of_none_takes_nothing() -> None:
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5, 6], requested=5, following=7)
    into: list[ReceivedMessage] = []
    cursor.take(0, None, into)
    assert (into, cursor.is_empty) == ([], False)


def test_a_page_after_all_taken_messages_waits_for_them() -> None:
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5], requested=5, following=6)
    cursor.take(1, None, [])
    add(cursor, [], requested=6, following=9)
    assert cursor.position == 5
    assert cursor.settle(cursor.generation)
    assert cursor.position == 9


def test_all_messages_that_are_not_received_are_fetched_again() -> None:
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5, 6, 7], requested=5, following=8)
    before, into = cursor.state, list[ReceivedMessage]()
    cursor.take(2, None, into)
    assert cursor.position == 5
    cursor.rewind(before)
    assert (cursor.position, cursor.fetch_at) == (5, 5)


def test_take_does_not_move_the_position_until_settle() -> None:
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5, 6, 7], requested=5, following=8)
    assert take(cursor, 2) == [5, 6]
    assert (cursor.position, cursor.fetch_at) == (5, 8)
    assert cursor.settle(cursor.generation)
    assert (cursor.position, cursor.fetch_at) == (7, 8)


def test_a_rewound_cursor_fetches_again_from_its_position() -> None:
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5, 6, 7], requested=5, following=8)
    before = cursor.state
    take(cursor, 2)
    cursor.rewind(before)
    assert (cursor.position, cursor.fetch_at, cursor.is_empty) == (5, 5, True)


def test_messages_taken_before_a_seek_neither_settle_nor_rewind() -> None:
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5, 6, 7], requested=5, following=8)
    before = cursor.state
    take(cursor, 2)
    cursor.seek(40)
    assert not cursor.settle(before.generation)
    cursor.rewind(before)
    assert (cursor.position, cursor.fetch_at) == (40, 40)


def test_a_page_from_before_a_seek_is_ignored() -> None:
    cursor = Cursor(QUEUE, 5)
    cursor.seek(40)
    add(cursor, [5, 6], requested=5, following=7)
    assert (cursor.position, cursor.fetch_at, cursor.is_empty) == (40, 40, True)


def test_a_used_up_page_moves_the_position_to_its_end() -> None:
    """The service filtered out messages after the last one."""
    cursor = Cursor(QUEUE, 5)
    add(cursor, [5], requested=5, following=20)
    take(cursor, 1)
    cursor.settle(cursor.generation)
    assert cursor.position == 20


def test_an_empty_page_waits_for_the_messages_before_it() -> None:
    cursor = Cursor(QUEUE, 0)
    add(cursor, [0], requested=0, following=1)
    add(cursor, [], requested=1, following=9)
    assert (cursor.position, cursor.fetch_at) == (0, 9)
    take(cursor, 1)
    cursor.settle(cursor.generation)
    assert cursor.position == 9


def test_filtered_out_messages_are_not_counted_and_are_skipped() -> None:
    cursor = Cursor(QUEUE, 0)
    add(cursor, [0, 1, 2, 3], requested=0, following=4)
    taken: list[ReceivedMessage] = []
    cursor.take(2, lambda m: m.queue_offset % 2 == 1, taken)
    cursor.settle(cursor.generation)
    assert [m.queue_offset for m in taken] == [1, 3]
    assert cursor.position == 4


class Picky:
    """A function that raises on some offsets."""

    def __init__(self, *offsets: int) -> None:
        self.offsets = set(offsets)

    def __call__(self, m: ReceivedMessage) -> bool:
        if m.queue_offset in self.offsets:
            raise ValueError(f"not {m.queue_offset}")
        return True

    def take(self, cursor: Cursor) -> list[int]:
        taken: list[ReceivedMessage] = []
        try:
            cursor.take(9, self, taken)
        except ValueError:
            cursor.has_raised = True
            raise
        finally:
            cursor.settle(cursor.generation)
        return [m.queue_offset for m in taken]


def test_a_message_on_which_the_predicate_raises_is_tried_again_first() -> None:
    cursor, picky = Cursor(QUEUE, 0), Picky(1)
    add(cursor, [0, 1, 2], requested=0, following=3)
    assert picky.take(cursor) == [0]
    with pytest.raises(ValueError, match="not 1"):
        picky.take(cursor)
    picky.offsets.clear()
    assert picky.take(cursor) == [1, 2]


def test_later_messages_pass_one_on_which_the_predicate_raised_and_the_position_stays() -> None:
    cursor, picky = Cursor(QUEUE, 0), Picky(1)
    add(cursor, [0, 1, 2, 3], requested=0, following=4)
    assert picky.take(cursor) == [0]
    with pytest.raises(ValueError, match="not 1"):
        picky.take(cursor)
    assert picky.take(cursor) == [2, 3]
    assert (cursor.position, cursor.fetch_at) == (1, 4)
    with pytest.raises(ValueError, match="not 1"):
        picky.take(cursor)
    picky.offsets.clear()
    assert picky.take(cursor) == [1]
    assert cursor.position == 4


def test_a_seek_forgets_held_messages() -> None:
    cursor, picky = Cursor(QUEUE, 0), Picky(0)
    add(cursor, [0, 1], requested=0, following=2)
    with pytest.raises(ValueError, match="not 0"):
        picky.take(cursor)
    assert picky.take(cursor) == [1]
    cursor.seek(2)
    assert (cursor.position, cursor.is_empty) == (2, True)


def test_a_predicate_that_seeks_ends_the_take() -> None:
    cursor = Cursor(QUEUE, 0)
    add(cursor, [0, 1, 2], requested=0, following=3)
    taken: list[ReceivedMessage] = []

    def is_wanted(_: ReceivedMessage) -> bool:
        cursor.seek(10)
        return True

    cursor.take(3, is_wanted, taken)
    assert (taken, cursor.position, cursor.fetch_at) == ([], 10, 10)


def test_a_named_offset_becomes_a_number_with_the_first_answer() -> None:
    cursor = Cursor(QUEUE, "earliest")
    add(cursor, [], requested=17, following=17)
    assert (cursor.position, cursor.fetch_at) == (17, 17)


def test_seeking_forgets_buffered_messages() -> None:
    cursor = Cursor(QUEUE, 0)
    add(cursor, [0, 1], requested=0, following=2)
    cursor.seek(40)
    assert (cursor.position, cursor.fetch_at, cursor.is_empty) == (40, 40, True)
