from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from tidemark.client.consumer.start_offsets import Place, StartOffsets
from tidemark.client.received_message import TopicQueue
from tidemark.client.rest.query import Query
from tidemark.errors import MessageNotFoundError, TopicNotFoundError


class Service:
    """Ends of queues by topic, and topics in which the group has offsets."""

    def __init__(self, ends: dict[str, list[int]], recorded: tuple[str, ...] | None = None) -> None:
        self.ends = ends
        self.recorded = recorded

    def get(self, path: str, **_: Any) -> dict[str, Any]:
        kind, name = path.removeprefix("/v1/").split("/")
        if kind == "groups":
            if self.recorded is None:
                raise MessageNotFoundError("no such group")
            return {"queues": [{"topic": topic} for topic in self.recorded]}
        if name not in self.ends:
            raise TopicNotFoundError("no such topic")
        queues = [{"queue_id": number, "max_offset": end} for number, end in enumerate(self.ends[name])]
        return {"queue_ids": list(range(len(queues))), "queues": queues}

    def offset_at(self, topic: str, queue_id: int, time_ms: int) -> dict[str, Any]:
        return {"offset": time_ms // 1000}


def starts(service: Service, start: Place, *, group: str | None = None, **options: Any) -> StartOffsets:
    made = StartOffsets(cast(Query, service), start, group=group, topics=["orders"], **options)
    made.prepare()
    return made


ZERO, ONE, RETRIES = TopicQueue("orders", 0), TopicQueue("orders", 1), TopicQueue("%RETRY%g", 0)


def test_earliest_begins_at_the_earliest_message_of_each_queue() -> None:
    assert starts(Service({"orders": [5]}), "earliest").begin(ZERO) == "earliest"


def test_latest_begins_at_the_queue_ends_at_start_time() -> None:
    """Messages that come between the start and the first look are read."""
    service = Service({"orders": [5, 7]})
    made = starts(service, "latest")
    service.ends["orders"] = [50, 70]
    assert [made.begin(queue) for queue in (ZERO, ONE)] == [5, 7]


@pytest.mark.parametrize("start", ["latest", 3])
def test_a_queue_created_after_the_start_begins_at_its_earliest_message(start: Place) -> None:
    service = Service({"orders": [5]})
    made = starts(service, start)
    service.ends["orders"] = [9, 9]
    assert made.begin(ONE) == "earliest"
    assert starts(Service({}), start).begin(ZERO) == "earliest"


def test_a_queue_assigned_again_begins_at_its_earliest_message() -> None:
    made = starts(Service({"orders": [5]}), "latest")
    assert [made.begin(ZERO), made.begin(ZERO)] == [5, "earliest"]


def test_a_numeric_start_applies_to_the_queues_known_at_the_start() -> None:
    assert starts(Service({"orders": [5]}), 3).begin(ZERO) == 3


def test_a_numeric_start_applies_to_named_queues_every_time() -> None:
    made = starts(Service({"orders": [5]}), 3, named=[ONE])
    assert [made.begin(ONE), made.begin(ONE)] == [3, 3]


def test_a_time_is_looked_up_in_each_queue() -> None:
    when = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert starts(Service({"orders": [5]}), when).begin(ZERO) == int(when.timestamp())


def test_a_queue_without_an_offset_is_newer_than_a_group_that_has_read_the_topic() -> None:
    service = Service({"orders": [5, 7]}, recorded=("orders",))
    assert starts(service, "latest", group="g").begin(ONE) == "earliest"
    other = Service({"orders": [5, 7]}, recorded=("others",))
    assert starts(other, "latest", group="g").begin(ONE) == 7
    assert starts(Service({"orders": [5, 7]}), "latest", group="new").begin(ONE) == 7


def test_retries_begin_at_their_earliest_message() -> None:
    assert starts(Service({"orders": [5], "%RETRY%g": [9]}), "latest", group="g").begin(RETRIES) == "earliest"


def test_the_end_of_a_named_queue_comes_from_the_given_function() -> None:
    made = starts(Service({}), "latest", named=[ZERO], end_of=lambda queue: 40 + queue.queue_id)
    assert made.begin(ZERO) == 40
