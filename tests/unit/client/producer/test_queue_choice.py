from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from tidemark.client.message_queue import MessageQueue
from tidemark.client.producer.queue_choice import QueueChoice
from tidemark.client.producer.topic_routes import Route
from tidemark.client.producer.writer_pool import Writers
from tidemark.errors import ArgumentIllegalError, QueueIllegalError, TopicForbiddenError
from tidemark.format.primitives import queue_of_key


class Links:
    """Writers and the route of the topic, without connections."""

    def __init__(self, queues: dict[str, int], *, down: frozenset[str] = frozenset(), slow: str = "") -> None:
        self.by_address = {
            address: SimpleNamespace(
                address=address,
                stream=SimpleNamespace(is_down=address in down),
                is_slow=lambda address=address: address == slow,
            )
            for address in queues
        }
        names = [MessageQueue("orders", address, n) for address, count in queues.items() for n in range(count)]
        self.route = Route(tuple(names), is_batch=False)
        self.routes = SimpleNamespace(route=lambda topic: self.route)

    def links(self) -> list[SimpleNamespace]:
        return list(self.by_address.values())

    def link(self, address: str) -> SimpleNamespace:
        return self.by_address[address]

    def choice(self, *, avoid_slow: bool = False) -> QueueChoice:
        return QueueChoice(cast(Writers, self), avoid_slow=avoid_slow)


def writers_chosen(links: Links, times: int, *, avoid_slow: bool = False, avoid: str | None = None) -> Counter[str]:
    choice = links.choice(avoid_slow=avoid_slow)
    return Counter(choice.next(links.route, "orders", avoid=avoid).writer for _ in range(times))


def test_round_robin_covers_all_queues_evenly() -> None:
    links = Links({"a": 3})
    choice = links.choice()
    assert Counter(choice.next(links.route, "orders").queue_id for _ in range(9)) == {0: 3, 1: 3, 2: 3}


def test_a_writer_that_is_down_is_avoided_while_another_is_up() -> None:
    assert writers_chosen(Links({"a": 2, "b": 2}, down=frozenset({"a"})), 8) == {"b": 8}


def test_the_writer_of_the_failed_attempt_is_avoided() -> None:
    assert writers_chosen(Links({"a": 2, "b": 2}), 8, avoid="b") == {"a": 8}


def test_a_slow_writer_is_avoided_only_with_avoid_slow() -> None:
    assert writers_chosen(Links({"a": 2, "b": 2}, slow="a"), 8, avoid_slow=True) == {"b": 8}
    assert set(writers_chosen(Links({"a": 2, "b": 2}, slow="a"), 8)) == {"a", "b"}


def test_a_queue_is_chosen_even_if_every_writer_is_down() -> None:
    assert sum(writers_chosen(Links({"a": 1, "b": 1}, down=frozenset({"a", "b"})), 4).values()) == 4


def test_messages_of_a_key_stay_in_one_queue_whichever_writers_are_up() -> None:
    up, down = Links({"a": 2, "b": 2}), Links({"a": 2, "b": 2}, down=frozenset({"a"}))
    assert up.choice().by_key("orders", "k") == down.choice().by_key("orders", "k")
    assert up.choice().by_key("orders", "k") == up.route.queues[queue_of_key("k", 4)]


def test_a_queue_number_selects_a_queue_of_the_only_writer() -> None:
    assert Links({"a": 2}).choice().named("orders", 7) == MessageQueue("orders", "a", 7)


def test_a_queue_number_is_refused_with_several_writers() -> None:
    with pytest.raises(ArgumentIllegalError):
        Links({"a": 2, "b": 2}).choice().named("orders", 0)


def test_a_queue_number_is_checked_if_only_one_writer_has_the_topic() -> None:
    links = Links({"a": 2, "b": 0})
    assert links.choice().named("orders", 1).writer == "a"
    with pytest.raises(QueueIllegalError) as refused:
        links.choice().named("orders", 2)
    assert (refused.value.facts["queue_id"], refused.value.facts["queues"]) == (2, 2)


def test_a_topic_without_queues_is_refused_for_sending() -> None:
    links = Links({"a": 0})
    with pytest.raises(TopicForbiddenError):
        links.choice().next(links.route, "orders")
