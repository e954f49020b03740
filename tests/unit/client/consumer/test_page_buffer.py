from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import cast

import pytest

from tests.unit.client.received_messages import ORDERS, page_json, received
from tidemark.client.consumer.group_member import Assignment
from tidemark.client.consumer.page_buffer import PageBuffer
from tidemark.client.consumer.page_source import Fetched
from tidemark.client.consumer.queue_cursor import Cursors
from tidemark.client.consumer.start_offsets import StartOffsets
from tidemark.client.received_message import PulledPage, ReceivedMessage, TopicQueue, pulled_page
from tidemark.client.rest.arrow_page import TablePage
from tidemark.client.rest.query import Query
from tidemark.errors import (
    OffsetError,
    OffsetOutOfRangeError,
    OffsetTooSmallError,
    QueryUnreachableError,
    TopicNotFoundError,
    UnavailableError,
)

OTHER = TopicQueue("orders", 1)
JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"


class Group:
    """The assignment of one member."""

    has_seen_topics = True

    def __init__(self, *queues: TopicQueue) -> None:
        self.now = Assignment(1, 1, dict.fromkeys(queues))
        self.released: list[frozenset[TopicQueue]] = []

    def assign(self, offsets: Mapping[TopicQueue, int | None], *, incarnation: int = 1) -> None:
        self.now = Assignment(incarnation, self.now.generation + 1, offsets)

    def start(self) -> None: ...

    def assignment(self) -> Assignment:
        return self.now

    def release(self, queues: frozenset[TopicQueue]) -> None:
        self.released.append(queues)

    def commit(self, offsets: Mapping[TopicQueue, int]) -> None: ...

    def close(self) -> None: ...


class Source:
    """Pulls that a test answers."""

    def __init__(self, accept: str) -> None:
        self.accept = accept
        self.wanted: dict[TopicQueue, int | str] = {}
        self.is_patient = False
        self.descriptors: list[int] = []
        self.unreachable: tuple[float, UnavailableError] | None = None
        self.answers: list[Fetched] = []
        self.is_closed = False

    def want(self, queue: TopicQueue, offset: int | str) -> None:
        self.wanted[queue] = offset

    def drop(self, queue: TopicQueue) -> None:
        self.wanted.pop(queue, None)

    def keep_only(self, queues: frozenset[TopicQueue]) -> None:
        self.wanted = {queue: offset for queue, offset in self.wanted.items() if queue in queues}

    def fetched(self, timeout_s: float) -> Iterator[Fetched]:
        answers, self.answers = self.answers, []
        yield from answers

    def failed(self, error: UnavailableError) -> None:
        self.unreachable = time.monotonic(), error

    def wake(self) -> None: ...

    def close(self) -> None:
        self.is_closed = True


class Answer:
    """A page, or the error of a refused pull."""

    def __init__(self, queue: TopicQueue, answer: PulledPage | Exception) -> None:
        self.queue = queue
        self._answer = answer

    def page(self) -> PulledPage:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    def table(self) -> TablePage:
        raise NotImplementedError


class Reader:
    """A `PageBuffer`, and records of its callbacks and sources."""

    def __init__(self, *queues: TopicQueue) -> None:
        self.group = Group(*queues)
        self.sources: list[Source] = []
        self.lost: list[tuple[set[TopicQueue], bool]] = []
        self.new: list[frozenset[TopicQueue]] = []
        self.on_new: Callable[[frozenset[TopicQueue]], None] = self.new.append
        self.reset_to: int | None = None
        self.reading = PageBuffer(
            self.group,
            make_pulls=self._source,
            starts=StartOffsets(cast(Query, None), "earliest", group="g", topics=["orders"]),
            reset=self._reset,
            on_lost=self._lose,
            on_new=self._welcome,
        )

    def _source(self, accept: str) -> Source:
        self.sources.append(Source(accept))
        return self.sources[-1]

    def _reset(self, queue: TopicQueue, error: OffsetError) -> int:
        if self.reset_to is None:
            raise error
        return self.reset_to

    def _welcome(self, queues: frozenset[TopicQueue]) -> None:
        self.on_new(queues)

    def _lose(self, cursors: Cursors, *, is_gone: bool) -> None:
        self.lost.append((set(cursors), is_gone))

    def start(self) -> Reader:
        self.reading.follow()
        self.reading.pull(JSON)
        return self

    def answer(self, queue: TopicQueue, answer: PulledPage | Exception) -> None:
        self.reading.add(Answer(queue, answer))

    def fill(self, queue: TopicQueue, first: int, count: int) -> None:
        offsets = list(range(first, first + count))
        self.answer(queue, pulled_page(queue, page_json(first, offsets, end=first + count)))

    def take(self, most: int = 99) -> list[tuple[int, int]]:
        handout = self.reading.take(most, lambda _: True)
        return [(message.queue_id, message.queue_offset) for message in handout.settle()]


def test_queues_without_a_committed_offset_begin_at_their_start_offset() -> None:
    reader = Reader()
    reader.group.assign({ORDERS: None, OTHER: 7})
    reader.start()
    assert reader.sources[0].wanted == {ORDERS: "earliest", OTHER: 7}


def test_a_queue_of_another_member_is_released_after_the_callback() -> None:
    reader = Reader(ORDERS, OTHER).start()
    reader.group.assign({OTHER: None})
    reader.reading.follow()
    assert (reader.lost, reader.group.released) == ([({ORDERS}, False)], [frozenset({ORDERS})])
    assert (set(reader.reading.cursors), set(reader.sources[0].wanted)) == ({OTHER}, {OTHER})


def test_a_member_that_joins_again_loses_every_queue_first() -> None:
    """The queues may be another member's meanwhile, so that there is nothing to release."""
    reader = Reader(ORDERS).start()
    reader.group.assign({ORDERS: 40}, incarnation=2)
    reader.reading.follow()
    assert (reader.lost, reader.group.released) == ([({ORDERS}, True)], [])
    assert reader.reading.cursor(ORDERS).position == 40


def test_a_callback_that_raised_is_called_again_with_the_same_queues() -> None:
    reader = Reader(ORDERS)

    def fail(_: frozenset[TopicQueue]) -> None:
        raise ValueError("not yet")

    record, reader.on_new = reader.on_new, fail
    with pytest.raises(ValueError, match="not yet"):
        reader.reading.follow()
    reader.on_new = record
    reader.reading.follow()
    reader.reading.follow()
    assert reader.new == [frozenset({ORDERS})]


def test_queues_take_turns_when_a_poll_returns_fewer_messages_than_buffered() -> None:
    reader = Reader(ORDERS, OTHER).start()
    reader.fill(ORDERS, 0, 4)
    reader.fill(OTHER, 0, 4)
    assert [reader.take(2) for _ in range(4)] == [
        [(0, 0), (0, 1)],
        [(1, 0), (1, 1)],
        [(0, 2), (0, 3)],
        [(1, 2), (1, 3)],
    ]


def test_an_exception_of_the_predicate_keeps_the_messages_of_other_queues() -> None:
    reader = Reader(ORDERS, OTHER).start()
    reader.fill(ORDERS, 0, 1)
    reader.fill(OTHER, 0, 1)

    def is_wanted(message: ReceivedMessage) -> bool:
        if message.queue == ORDERS:
            raise ValueError("unreadable")
        return True

    assert reader.reading.take(9, is_wanted).settle() == [received(0, queue=OTHER, message_id="id-0")]
    with pytest.raises(ValueError, match="unreadable"):
        reader.reading.take(9, is_wanted)


def test_a_paused_queue_is_neither_pulled_nor_taken() -> None:
    reader = Reader(ORDERS).start()
    reader.fill(ORDERS, 0, 1)
    reader.reading.pause(ORDERS)
    reader.reading.pull(JSON)
    assert (reader.sources[0].wanted, reader.take()) == ({}, [])


def test_pulls_run_two_pages_ahead_of_the_program() -> None:
    reader = Reader(ORDERS).start()
    reader.fill(ORDERS, 0, 1)
    reader.reading.pull(JSON)
    assert reader.sources[0].wanted == {ORDERS: 1}
    reader.fill(ORDERS, 1, 1)
    reader.sources[0].wanted.clear()
    reader.reading.pull(JSON)
    assert reader.sources[0].wanted == {}


def test_a_pull_in_another_format_fetches_the_buffered_messages_again() -> None:
    reader = Reader(ORDERS).start()
    reader.fill(ORDERS, 0, 3)
    reader.reading.pull(ARROW)
    first, second = reader.sources
    assert (first.is_closed, second.accept, second.wanted) == (True, ARROW, {ORDERS: 0})


def test_an_out_of_range_offset_continues_at_the_reset_offset() -> None:
    reader = Reader(ORDERS).start()
    reader.fill(ORDERS, 0, 3)
    reader.reset_to = 5
    reader.answer(ORDERS, OffsetOutOfRangeError("beyond the end"))
    assert (reader.reading.cursor(ORDERS).position, reader.reading.decided[ORDERS]) == (5, 5)
    reader.reset_to = None
    with pytest.raises(OffsetOutOfRangeError):
        reader.answer(ORDERS, OffsetOutOfRangeError("beyond the end"))


def test_a_topic_that_was_created_again_begins_at_its_first_offset_without_a_reset() -> None:
    reader = Reader(ORDERS).start()
    reader.fill(ORDERS, 0, 3)
    reader.answer(ORDERS, OffsetTooSmallError("deleted", first_offset=100, min_offset=120))
    assert reader.reading.cursor(ORDERS).position == 100


def test_a_topic_that_never_existed_is_an_error() -> None:
    reader = Reader(ORDERS)
    reader.group.has_seen_topics = False
    reader.start()
    with pytest.raises(TopicNotFoundError):
        reader.answer(ORDERS, TopicNotFoundError("no such topic"))


def test_an_answer_for_a_lost_queue_is_dropped() -> None:
    reader = Reader(ORDERS, OTHER).start()
    reader.sources[0].answers = [Answer(queue, ValueError("unread")) for queue in (ORDERS, OTHER)]
    reader.group.assign({OTHER: None})
    reader.reading.follow()
    assert [fetched.queue for fetched in reader.reading.wait(0)] == [OTHER]


def test_a_service_that_never_answered_raises_and_a_short_outage_does_not() -> None:
    reader = Reader(ORDERS).start()
    reader.answer(ORDERS, QueryUnreachableError("starting"))
    with pytest.raises(QueryUnreachableError):
        list(reader.reading.wait(0))
    reader.fill(ORDERS, 0, 1)
    assert list(reader.reading.wait(0)) == []
    reader.sources[0].unreachable = time.monotonic() - 61, QueryUnreachableError("for a minute")
    with pytest.raises(QueryUnreachableError, match="for a minute"):
        list(reader.reading.wait(0))
