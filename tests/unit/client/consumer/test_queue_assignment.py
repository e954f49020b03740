from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from tests.unit.client.received_messages import ORDERS
from tidemark.client.consumer import queue_assignment
from tidemark.client.consumer.queue_assignment import AllQueues, NamedQueues
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.query import Query
from tidemark.errors import MessageNotFoundError, QueryUnreachableError, TopicNotFoundError

OTHER = TopicQueue("orders", 1)


class Service:
    """Queue ids by topic, and the offsets of one group."""

    def __init__(self, **topics: list[int]) -> None:
        self.topics = topics
        self.offsets: dict[TopicQueue, int] | None = None
        self.is_away = False
        self.puts: list[tuple[str, Any]] = []

    def get(self, path: str) -> dict[str, Any]:
        if self.is_away:
            raise QueryUnreachableError("away")
        kind, name = path.removeprefix("/v1/").split("/")
        if kind == "groups":
            if self.offsets is None:
                raise MessageNotFoundError("no such group")
            return {"queues": [{**queue._asdict(), "offset": offset} for queue, offset in self.offsets.items()]}
        if name not in self.topics:
            raise TopicNotFoundError("no such topic")
        return {"queue_ids": self.topics[name]}

    def put(self, path: str, body: Any) -> dict[str, Any]:
        self.puts.append((path, body))
        return {}


def named(service: Service, *queues: TopicQueue, group: str | None = None) -> NamedQueues:
    made = NamedQueues(cast(Query, service), queues, group)
    made.start()
    return made


@pytest.fixture
def look_again(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that makes the known queues old."""
    return lambda: monkeypatch.setattr(queue_assignment, "_TOPIC_AGE_S", -1.0)


def all_queues(service: Service, *topics: str) -> AllQueues:
    made = AllQueues(cast(Query, service), topics)
    made.start()
    return made


def test_named_queues_have_the_committed_offsets_of_their_group() -> None:
    service = Service()
    service.offsets = {ORDERS: 7, TopicQueue("unread", 0): 9}
    assert named(service, ORDERS, OTHER, ORDERS, group="g").assignment().offsets == {ORDERS: 7, OTHER: None}


@pytest.mark.parametrize("group", [None, "new"])
def test_named_queues_of_an_unknown_group_have_no_offsets(group: str | None) -> None:
    assert named(Service(), ORDERS, group=group).assignment().offsets == {ORDERS: None}


def test_a_commit_of_named_queues_percent_encodes_the_group() -> None:
    service = Service()
    named(service, ORDERS, group="a/b").commit({ORDERS: 4, OTHER: 5})
    offsets = [{"topic": "orders", "queue_id": 0, "offset": 4}, {"topic": "orders", "queue_id": 1, "offset": 5}]
    assert service.puts == [("/v1/groups/a%2Fb/offsets", {"offsets": offsets})]


def test_all_queues_of_all_topics_are_assigned_without_offsets() -> None:
    queues = all_queues(Service(orders=[0, 1], users=[0]), "users", "orders")
    assert queues.assignment().offsets == {ORDERS: None, OTHER: None, TopicQueue("users", 0): None}


def test_a_topic_that_does_not_exist_at_the_start_is_an_error() -> None:
    with pytest.raises(TopicNotFoundError):
        all_queues(Service(), "orders")


def test_an_assignment_that_did_not_change_stays_the_same_object(look_again: Callable[[], None]) -> None:
    """The reader compares the objects, to see a change at no cost."""
    queues = all_queues(Service(orders=[0]), "orders")
    before = queues.assignment()
    look_again()
    assert queues.assignment() is before


def test_a_queue_that_is_added_later_is_found(look_again: Callable[[], None]) -> None:
    service = Service(orders=[0])
    queues = all_queues(service, "orders")
    service.topics["orders"] = [0, 1]
    assert queues.assignment().queues == {ORDERS}, "known for less than 30 s"
    look_again()
    assert queues.assignment().queues == {ORDERS, OTHER}


def test_queues_of_a_deleted_topic_stay_assigned(look_again: Callable[[], None]) -> None:
    service = Service(orders=[0], users=[0])
    queues = all_queues(service, "orders", "users")
    del service.topics["orders"]
    service.topics["users"] = [0, 1]
    look_again()
    assert queues.assignment().queues == {ORDERS, TopicQueue("users", 0), TopicQueue("users", 1)}


def test_known_queues_stay_assigned_while_the_service_is_unreachable(look_again: Callable[[], None]) -> None:
    service = Service(orders=[0])
    queues = all_queues(service, "orders")
    service.is_away = True
    look_again()
    assert queues.assignment().queues == {ORDERS}
