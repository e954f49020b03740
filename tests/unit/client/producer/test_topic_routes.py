from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_service import GENEROUS_S
from tests.unit.client.fake_writer import FakeWriter
from tests.waiting import until
from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer import topic_routes
from tidemark.client.producer.topic_routes import Routes
from tidemark.client.wire.pending_batches import PendingLimits
from tidemark.client.wire.writer_connection import WriterLink
from tidemark.errors import WriterUnreachableError
from tidemark.tls.credentials import Credentials


@contextmanager
def routes_of(*addresses: str, timeout_s: float = GENEROUS_S) -> Iterator[Routes]:
    """Routes over writers at *addresses*."""
    limits, credentials = PendingLimits(1 << 20, 100), Credentials()
    links = [WriterLink(one, timeout_s=timeout_s, limits=limits, credentials=credentials) for one in addresses]
    try:
        yield Routes(lambda: links, timeout_s=timeout_s)
    finally:
        for link in links:
            link.close()


@pytest.fixture
def pair() -> Iterator[tuple[FakeWriter, FakeWriter]]:
    """Two writers; the one that is named last has the first store by name."""
    writers = FakeWriter(store_name="z", queues=1), FakeWriter(store_name="a", queues=2)
    for one in writers:
        one.start()
    yield writers
    for one in writers:
        one.stop()


@pytest.fixture
def routes(pair: tuple[FakeWriter, FakeWriter]) -> Iterator[Routes]:
    with routes_of(*(one.address for one in pair)) as made:
        yield made


def test_queues_are_in_the_order_of_the_stores_names(pair: tuple[FakeWriter, FakeWriter], routes: Routes) -> None:
    """Whatever their addresses are, so that a key keeps its queue when a writer moves."""
    z, a = (one.address for one in pair)
    expected = MessageQueue("orders", a, 0), MessageQueue("orders", a, 1), MessageQueue("orders", z, 0)
    assert routes.route("orders").queues == expected


def test_writers_that_have_the_topic_are_preferred_to_those_that_would_create_it(
    pair: tuple[FakeWriter, FakeWriter], routes: Routes
) -> None:
    pair[1].has_topics = False
    assert {queue.writer for queue in routes.route("orders").queues} == {pair[0].address}
    pair[0].has_topics = False
    routes.forget("orders")
    assert {queue.writer for queue in routes.route("orders").queues} == {one.address for one in pair}


@pytest.mark.parametrize("attributes", [{}, {"queue.type": "BatchCQ"}])
def test_a_batch_topic_is_recognised_by_its_attribute(
    pair: tuple[FakeWriter, FakeWriter], routes: Routes, attributes: dict[str, str]
) -> None:
    pair[0].attributes = attributes
    assert routes.route("orders").is_batch is bool(attributes)


def test_a_cached_route_is_not_requested_again_until_it_is_dropped(
    pair: tuple[FakeWriter, FakeWriter], routes: Routes
) -> None:
    assert routes.known("orders") is None
    for _ in range(3):
        routes.route("orders")
    assert [one.asked_routes for one in pair] == [1, 1]
    routes.forget_all()
    assert routes.known("orders") is None
    routes.route("orders")
    assert [one.asked_routes for one in pair] == [2, 2]


def test_an_expired_route_is_used_while_the_new_one_is_requested(
    pair: tuple[FakeWriter, FakeWriter], routes: Routes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(routes.route("orders").queues) == 3
    pair[0].queues = 5
    monkeypatch.setattr(topic_routes, "AGE_S", -1.0)
    monkeypatch.setattr(topic_routes, "INCOMPLETE_AGE_S", -1.0)

    def queues() -> int:
        known = routes.known("orders")
        assert known is not None, "no send waits for the new one"
        return len(known.queues)

    until(lambda: queues() == 7)


def test_an_unreachable_writer_delays_the_route_only_for_the_grace_period(
    pair: tuple[FakeWriter, FakeWriter], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topic_routes, "GRACE_S", 0.05)
    with routes_of(pair[0].address, f"127.0.0.1:{fixed_port()}", timeout_s=1.5) as routes:
        assert {queue.writer for queue in routes.route("orders").queues} == {pair[0].address}


def test_the_error_without_a_reachable_writer_names_the_address_and_the_cause() -> None:
    address = f"127.0.0.1:{fixed_port()}"
    with routes_of(address, timeout_s=0.3) as routes:
        with pytest.raises(WriterUnreachableError, match="refused") as failed:
            routes.route("orders")
        assert address in failed.value.message
        assert routes.known("orders") is None
