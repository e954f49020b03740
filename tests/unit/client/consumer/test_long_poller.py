from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_service import GENEROUS_S, FakeService, serving
from tests.unit.client.received_messages import ORDERS
from tests.waiting import until
from tidemark.client.consumer.long_poller import Fetcher
from tidemark.client.received_message import JSON, TopicQueue
from tidemark.errors import QueryUnreachableError

RETRIES = TopicQueue("%RETRY%g", 0)
MANY = [TopicQueue("orders", number) for number in range(17)]  # one more than are asked for one by one


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving() as made:
        made.add(ORDERS, b"a", b"b")
        yield made


def fetcher(url: str, **parameters: Any) -> Fetcher:
    return Fetcher(
        url, accept=JSON, parameters=parameters, timeout_s=GENEROUS_S, tagged_topics=frozenset({ORDERS.topic})
    )


@pytest.fixture
def pulls(service: FakeService) -> Iterator[Fetcher]:
    made = fetcher(service.url, tag="red")
    yield made
    service.is_silent = False
    made.close()


def collect(pulls: Fetcher, count: int) -> dict[TopicQueue, list[bytes]]:
    """Return the bodies of the next *count* answers by queue."""
    found: dict[TopicQueue, list[bytes]] = {}
    deadline = time.monotonic() + GENEROUS_S
    while len(found) < count:
        assert time.monotonic() < deadline, found
        for fetched in pulls.fetched(1.0):
            assert fetched.queue not in found
            found[fetched.queue] = [message.body for message in fetched.page().messages]
    return found


def test_one_requested_queue_gets_one_answer(service: FakeService, pulls: Fetcher) -> None:
    pulls.want(ORDERS, 1)
    assert collect(pulls, 1) == {ORDERS: [b"b"]}
    assert list(pulls.fetched(0.0)) == []
    assert len(service.paths("/messages")) == 1


def test_repeated_requests_for_the_same_offset_send_one_pull(service: FakeService, pulls: Fetcher) -> None:
    service.is_silent = True
    for _ in range(3):
        pulls.want(ORDERS, 0)
        assert list(pulls.fetched(0.0)) == []
    service.is_silent = False
    collect(pulls, 1)
    assert len(service.paths("/messages")) == 1


def test_a_request_for_another_offset_replaces_the_pull_in_flight(service: FakeService, pulls: Fetcher) -> None:
    service.is_silent = True
    pulls.want(ORDERS, 0)
    assert list(pulls.fetched(0.0)) == []
    pulls.want(ORDERS, 1)
    service.is_silent = False
    assert collect(pulls, 1) == {ORDERS: [b"b"]}


def test_many_queues_share_one_request_and_each_is_answered(service: FakeService, pulls: Fetcher) -> None:
    for queue in MANY[1:]:
        service.add(queue, b"%d" % queue.queue_id)
        pulls.want(queue, 0)
    pulls.want(ORDERS, 1)
    assert collect(pulls, 17) == {ORDERS: [b"b"], **{queue: [b"%d" % queue.queue_id] for queue in MANY[1:]}}
    assert (len(service.paths("/pull")), service.paths("/messages")) == (1, [])


def test_a_queue_that_a_shared_answer_left_out_can_be_requested_again(service: FakeService, pulls: Fetcher) -> None:
    """The service answers as many queues as fit into one answer."""
    for queue in MANY:
        service.add(queue, b"x")
        pulls.want(queue, 0)
    service.left_out = {MANY[5]}
    assert MANY[5] not in collect(pulls, 16)
    pulls.want(MANY[5], 0)
    assert collect(pulls, 1) == {MANY[5]: [b"x"]}


def test_the_filter_by_tag_applies_to_its_topics_only(service: FakeService, pulls: Fetcher) -> None:
    service.add(RETRIES, b"again")
    pulls.want(ORDERS, 0)
    pulls.want(RETRIES, 0)
    collect(pulls, 2)
    tags = {request.path.split("/")[3]: request.parameters.get("tag") for request in service.requests}
    assert tags == {"orders": ["red"], "%25RETRY%25g": None}


def test_queues_with_and_without_the_filter_share_no_request(service: FakeService, pulls: Fetcher) -> None:
    service.add(RETRIES, b"again")
    for queue in MANY:
        service.add(queue, b"x")
        pulls.want(queue, 0)
    pulls.want(RETRIES, 0)
    collect(pulls, 18)
    (shared,) = (request for request in service.requests if request.path == "/v1/pull")
    assert (shared.body["tag"], len(shared.body["queues"])) == (["red"], 17)


def test_wake_ends_a_wait_of_another_thread(service: FakeService, pulls: Fetcher) -> None:
    service.is_silent = True
    pulls.want(ORDERS, 0)
    waiting = threading.Thread(target=lambda: list(pulls.fetched(600.0)), daemon=True)
    waiting.start()
    until(lambda: service.paths("/messages"))
    pulls.wake()
    waiting.join(GENEROUS_S)
    assert not waiting.is_alive()


def test_an_unreachable_service_is_reported_since_its_first_failure() -> None:
    pulls = fetcher(f"http://127.0.0.1:{fixed_port()}")
    pulls.want(ORDERS, 0)
    assert list(pulls.fetched(0.0)) == []
    assert pulls.unreachable is not None
    since, error = pulls.unreachable
    assert isinstance(error, QueryUnreachableError)

    def fails_again() -> bool:
        pulls.want(ORDERS, 0)
        assert list(pulls.fetched(0.01)) == []
        return pulls.unreachable is not None and pulls.unreachable[1] is not error

    until(fails_again)
    assert pulls.unreachable[0] == since
    pulls.close()


def test_a_reported_failure_is_cleared_by_the_next_answer(pulls: Fetcher) -> None:
    pulls.failed(QueryUnreachableError("starting"))
    pulls.want(ORDERS, 0)
    assert collect(pulls, 1) == {ORDERS: [b"a", b"b"]}
    assert pulls.unreachable is None


def test_after_an_outage_the_first_answer_is_awaited(service: FakeService, pulls: Fetcher) -> None:
    """A wait that ends at once would take a whole processor until the service has a message."""
    service.is_silent = True
    pulls.failed(QueryUnreachableError("not reached"))
    pulls.want(ORDERS, 0)
    until(lambda: [*pulls.fetched(0.01), *service.paths("/messages")])
    began = time.monotonic()
    assert list(pulls.fetched(0.2)) == []
    assert time.monotonic() - began > 0.19


def test_a_queue_that_is_dropped_from_a_shared_request_is_not_answered(service: FakeService, pulls: Fetcher) -> None:
    for queue in MANY:
        service.add(queue, b"x")
        pulls.want(queue, 0)
    service.is_silent = True
    assert list(pulls.fetched(0.0)) == []
    pulls.drop(MANY[3])
    service.is_silent = False
    assert set(collect(pulls, 16)) == set(MANY) - {MANY[3]}
