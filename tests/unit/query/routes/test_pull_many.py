from __future__ import annotations

import email
import email.policy
from typing import Any

import httpx
import pytest

from tests.built_store import BuiltStore
from tests.unit.query.routes.conftest import MESSAGES
from tests.unit.query.served_app import ServedApp


def queue(queue_id: int, offset: int | str, topic: str = "orders") -> dict[str, Any]:
    return {"topic": topic, "queue_id": queue_id, "offset": offset}


def pull(service: ServedApp, *queues: dict[str, Any], accept: str = "*/*", **more: Any) -> httpx.Response:
    body = {"queues": queues, "body_encoding": "utf8", **more}
    return service.ask("POST", "/v1/pull", json=body, headers={"Accept": accept})


def bodies(answer: httpx.Response) -> list[list[str]]:
    return [[message["body"] for message in one["messages"]] for one in answer.json()["answers"]]


def test_only_queues_with_messages_have_an_answer(service: ServedApp) -> None:
    answer = pull(service, queue(0, 4), queue(1, 0), queue(0, 1, "batches"))
    assert bodies(answer) == [["m4", "m5"], ["b1", "b2"]]
    assert answer.json()["looked_at"] == 3


def test_limits_apply_to_all_queues_together(service: ServedApp) -> None:
    """The queues after a full answer are not read, and looked_at is the number of those that were."""
    answer = pull(service, queue(0, 0), queue(0, 0, "batches"), queue(1, 0), max_messages=MESSAGES)
    assert (bodies(answer), answer.json()["looked_at"]) == ([[f"m{n}" for n in range(MESSAGES)]], 1)


def test_a_queue_may_be_named_once(service: ServedApp) -> None:
    answer = pull(service, queue(0, 4), queue(0, 5))
    assert (answer.status_code, answer.json()["detail"]) == (422, "queues: orders:0 is named twice")


def test_queues_may_be_named_in_the_query(service: ServedApp) -> None:
    """All queues of a topic, or some, each with its own offset or the request's."""
    asked = "/v1/pull?topic=orders&queue=batches:0:2&offset=4&body_encoding=utf8"
    assert bodies(service.ask("GET", asked)) == [["m4", "m5"], ["b2"], []]
    assert bodies(service.ask("GET", "/v1/pull?queue=orders:0&offset=5&body_encoding=utf8")) == [["m5"]]


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ("", 422, "query.topic: name a topic or a queue"),
        ("topic=absent", 404, "topic absent does not exist"),
        ("queue=orders", 422, "query.queue: 'orders': expected topic:queue:offset, such as orders:0:17"),
        ("queue=orders:x", 422, "query.queue: "),
        ("queue=orders:0:1&queue=orders:0:2", 422, "queues: orders:0 is named twice"),
    ],
)
def test_wrong_names_in_the_query_are_refused(service: ServedApp, query: str, status: int, detail: str) -> None:
    answer = service.ask("GET", f"/v1/pull?{query}")
    assert (answer.status_code, answer.json()["detail"][: len(detail)]) == (status, detail)


def test_a_queue_with_a_limit_of_its_own_returns_no_more_messages(service: ServedApp) -> None:
    """The request's limit holds for the sum, and the next queue is read."""
    first = {**queue(0, 1), "max_messages": 2}
    answer = pull(service, first, queue(0, 0, "batches"), max_messages=4)
    assert bodies(answer) == [["m1", "m2"], ["b0", "b1"]]
    assert [one["next_offset"] for one in answer.json()["answers"]] == [3, 2]
    assert bodies(pull(service, {**first, "max_messages": 99}, max_messages=1)) == [["m1"]]


def test_a_followed_queue_has_no_limit_of_its_own(service: ServedApp) -> None:
    answer = pull(service, {**queue(0, 1), "max_messages": 2}, follow=True)
    assert answer.status_code == 422
    assert "max_messages" in answer.json()["detail"] and "follow" in answer.json()["detail"]


def test_a_queue_that_is_refused_does_not_stop_the_others(service: ServedApp) -> None:
    refused, read = pull(service, queue(0, 99), queue(0, 2, "batches")).json()["answers"]
    assert (refused["reason"], refused["topic"], refused["queue_id"]) == ("OFFSET_OUT_OF_RANGE", "orders", 0)
    assert [message["body"] for message in read["messages"]] == ["b2"]


def test_a_multi_pull_in_another_format_has_one_part_per_queue(service: ServedApp) -> None:
    answer = pull(service, queue(0, 5), queue(0, 99, "batches"), accept="application/x-ndjson")
    head = f"Content-Type: {answer.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + answer.content, policy=email.policy.HTTP)
    first, second = message.iter_parts()
    assert (first.get_content_type(), first["Tidemark-Next-Offset"]) == ("application/x-ndjson", str(MESSAGES))
    assert (second.get_content_type(), second["Tidemark-Topic"]) == ("application/problem+json", "batches")


def test_a_multi_pull_without_messages_in_another_format_is_204(service: ServedApp) -> None:
    answer = pull(service, queue(1, 0), accept="application/octet-stream")
    assert (answer.status_code, answer.content, answer.headers["Tidemark-Looked-At"]) == (204, b"", "1")


def test_a_message_in_any_of_the_queues_ends_the_wait(service: ServedApp, built: BuiltStore) -> None:
    def publish_another() -> None:
        built.append("orders", b"new", queue_id=1)
        built.publish()

    body = {"queues": [queue(0, MESSAGES), queue(1, 0)], "wait_ms": 30_000, "body_encoding": "utf8"}
    assert bodies(service.ask_and_meanwhile(publish_another, "POST", "/v1/pull", json=body)) == [["new"]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"queues": []}, 422),
        ({"queues": [queue(0, 0), queue(0, 1)]}, 422),
        ({"queues": [queue(0, 0)], "store": "other"}, 404),
        ({"queues": [queue(0, -1)]}, 422),
        ({"queues": [{**queue(0, 0), "max_messages": 0}]}, 422),
    ],
)
def test_an_illegal_request_is_refused_as_a_whole(service: ServedApp, body: dict[str, Any], status: int) -> None:
    assert service.ask("POST", "/v1/pull", json=body).status_code == status


def test_more_queues_than_the_setting_allows_are_refused(built: BuiltStore) -> None:
    with ServedApp(built, query_max_pull_queues=1) as service:
        answer = pull(service, queue(0, 0), queue(1, 0))
        assert pull(service, queue(0, 0)).status_code == 200
    assert (answer.status_code, answer.json()["limit"]) == (422, 1)
