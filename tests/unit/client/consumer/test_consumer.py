from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.client.fake_service import GENEROUS_S, FakeService, serving
from tests.unit.client.received_messages import ORDERS
from tidemark.client import Consumer, ReceivedMessage
from tidemark.client.received_message import TopicQueue
from tidemark.errors import OffsetTooSmallError, TopicNotFoundError

OTHER = TopicQueue("orders", 1)


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving() as made:
        made.add(ORDERS, b"a", b"b", b"c", b"d")
        yield made


def member(service: FakeService, **settings: Any) -> Consumer:
    """Return a consumer of one queue that keeps its offsets in the name of a group."""
    return Consumer(queues=[ORDERS], group="g", url=service.url, timeout_s=GENEROUS_S, **settings)


def poll(consumer: Consumer, most: int = 99) -> list[bytes]:
    return [message.body for message in consumer.poll(GENEROUS_S, max_messages=most)]


def test_messages_of_a_queue_are_delivered_once_and_in_order(service: FakeService) -> None:
    with Consumer("orders", url=service.url) as consumer:
        assert [poll(consumer, 3), poll(consumer, 3)] == [[b"a", b"b", b"c"], [b"d"]]
        assert consumer.poll(0.0) == []
        service.add(ORDERS, b"e")
        assert poll(consumer) == [b"e"]


def test_an_iteration_that_ends_early_leaves_the_next_message_to_the_next_poll(service: FakeService) -> None:
    with Consumer("orders", url=service.url) as consumer:
        assert next(iter(consumer)).body == b"a"
        assert poll(consumer) == [b"b", b"c", b"d"]


def test_a_poll_of_no_messages_follows_the_assignment_and_hands_out_nothing(service: FakeService) -> None:
    with Consumer("orders", url=service.url) as consumer:
        assert consumer.assignment == frozenset()
        assert consumer.poll(0.0, max_messages=0) == []
        assert consumer.assignment == {ORDERS}


def test_messages_that_the_filter_rejects_are_skipped(service: FakeService) -> None:
    service.properties = {b"b": {"colour": "red", "size": "1"}, b"d": {"colour": "red"}}
    with Consumer("orders", url=service.url, where={"colour": "red"}) as consumer:
        assert poll(consumer) == [b"b", b"d"]
        assert consumer.position(ORDERS) == 4


def test_a_predicate_that_raises_is_raised_after_the_messages_before(service: FakeService) -> None:
    def where(message: ReceivedMessage) -> bool:
        if message.body == b"c":
            raise ValueError("unreadable")
        return True

    with member(service, where=where) as consumer:
        assert poll(consumer) == [b"a", b"b"]
        with pytest.raises(ValueError, match="unreadable"):
            poll(consumer)
        assert poll(consumer) == [b"d"]
    assert service.offsets == {ORDERS: 2}, "nothing is committed from that message on"


def test_handed_out_messages_are_committed_at_the_end(service: FakeService) -> None:
    with member(service) as consumer:
        poll(consumer, 2)
    assert service.offsets == {ORDERS: 2}
    with member(service) as consumer:
        assert poll(consumer) == [b"c", b"d"]


def test_a_block_that_ends_with_an_exception_commits_nothing(service: FakeService) -> None:
    def fail_after_a_poll() -> None:
        with member(service) as consumer:
            poll(consumer, 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_after_a_poll()
    assert service.offsets == {}


def test_a_poll_commits_only_messages_of_earlier_polls(service: FakeService) -> None:
    """The next call confirms that the program has dealt with them."""
    with member(service, auto_commit_interval_s=0.0) as consumer:
        poll(consumer, 1)
        assert service.offsets == {}
        poll(consumer, 2)
        assert service.offsets == {ORDERS: 1}


def test_without_auto_commit_only_explicit_commits_store_offsets(service: FakeService) -> None:
    with member(service, auto_commit=False) as consumer:
        poll(consumer, 3)
        consumer.commit({ORDERS: 1})
        assert service.offsets == {ORDERS: 1}
        consumer.commit()
        assert service.offsets == {ORDERS: 3}
        poll(consumer)
    assert service.offsets == {ORDERS: 3}


def test_a_seek_moves_the_position_and_is_committed_immediately(service: FakeService) -> None:
    with member(service) as consumer:
        poll(consumer)
        consumer.seek(ORDERS, 1)
        assert (consumer.position(ORDERS), service.offsets) == (1, {ORDERS: 1})
        assert poll(consumer) == [b"b", b"c", b"d"]
        consumer.seek_all("earliest")
        assert poll(consumer) == [b"a", b"b", b"c", b"d"]
        consumer.seek_all("latest")
        service.add(ORDERS, b"e")
        assert poll(consumer) == [b"e"]


def test_a_seek_in_a_queue_that_is_not_read_is_a_key_error(service: FakeService) -> None:
    with member(service) as consumer, pytest.raises(KeyError):
        consumer.seek(OTHER, 0)


def test_the_callback_for_new_queues_may_seek(service: FakeService) -> None:
    with member(service, on_assigned=lambda consumer, _: consumer.seek(ORDERS, 3)) as consumer:
        assert poll(consumer) == [b"d"]


def test_a_start_at_latest_is_committed_before_the_first_message(service: FakeService) -> None:
    """A restart before the first message misses nothing."""
    with member(service, start="latest") as consumer:
        assert consumer.poll(0.0) == []
        assert service.offsets == {ORDERS: 4}


@pytest.mark.parametrize(("out_of_range", "expected"), [("earliest", [b"a", b"b", b"c", b"d"]), ("latest", [b"e"])])
def test_an_offset_that_retention_deleted_continues_where_the_program_chose(
    service: FakeService, out_of_range: str, expected: list[bytes]
) -> None:
    service.min_offsets[ORDERS] = 10
    service.offsets[ORDERS] = 3
    with member(service, out_of_range=out_of_range) as consumer:
        consumer.poll(0.0, max_messages=0)
        while service.offsets[ORDERS] == 3:
            consumer.poll(0.01, max_messages=0)
        service.add(ORDERS, b"e")
        assert poll(consumer)[: len(expected)] == expected


def test_an_offset_that_retention_deleted_is_an_error_by_default(service: FakeService) -> None:
    service.min_offsets[ORDERS] = 10
    with Consumer(queues=[ORDERS], start=3, url=service.url) as consumer, pytest.raises(OffsetTooSmallError):
        poll(consumer)


def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(service: FakeService) -> None:
    service.add(OTHER, b"other")
    with Consumer("orders", url=service.url) as consumer:
        consumer.poll(0.0, max_messages=0)
        consumer.pause(ORDERS)
        assert poll(consumer) == [b"other"]
        consumer.resume(ORDERS)
        assert poll(consumer) == [b"a", b"b", b"c", b"d"]


def test_the_lag_counts_visible_messages_ahead_of_the_position(service: FakeService) -> None:
    service.add(OTHER)
    with Consumer("orders", url=service.url) as consumer:
        assert consumer.lag() == {ORDERS: 4, OTHER: 0}
        poll(consumer, 3)
        assert consumer.lag() == {ORDERS: 1, OTHER: 0}


def test_a_topic_that_does_not_exist_is_an_error(service: FakeService) -> None:
    with Consumer("unknown", url=service.url) as consumer, pytest.raises(TopicNotFoundError):
        consumer.poll(0.0)


@pytest.mark.parametrize("arguments", [{}, {"topics": "orders", "queues": [ORDERS]}])
def test_a_consumer_reads_either_topics_or_queues(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="topics or queues"):
        Consumer(**arguments)


def test_a_closed_consumer_hands_out_nothing(service: FakeService) -> None:
    consumer = Consumer("orders", url=service.url)
    consumer.close()
    consumer.close()
    with pytest.raises(ValueError, match="closed"):
        consumer.poll()


def test_calls_that_need_a_group_are_refused_without_one(service: FakeService) -> None:
    with Consumer("orders", url=service.url) as consumer:
        with pytest.raises(ValueError, match="group"):
            consumer.consume(print)
        poll(consumer)
        with pytest.raises(ValueError, match="group"):
            consumer.commit()
