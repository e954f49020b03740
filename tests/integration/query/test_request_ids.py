"""Ids of requests."""

from __future__ import annotations

import httpx
import pytest
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from tidemark.client import Query
from tidemark.errors import TopicNotFoundError
from tidemark.read.store_reader import StoreReader

pytestmark = pytest.mark.integration


def test_an_answer_has_the_id_of_its_request(client: httpx.Client) -> None:
    """It is the caller's if that is valid, otherwise a new one, for every kind of answer."""
    for path in ("/v1/topics", "/v1/topics/orders/queues/0/messages?offset=0", "/healthz", "/v1/nothing"):
        given = client.get(path, headers={"X-Request-Id": "mine-1"})
        assert given.headers.get_list("x-request-id") == ["mine-1"], path
        made = {client.get(path, headers=headers).headers["x-request-id"] for headers in ({}, {"X-Request-Id": "a b"})}
        assert len(made - {"mine-1", "a b"}) == 2, path


def test_a_problem_has_the_request_id(client: httpx.Client) -> None:
    """The client's error has it too, so that a user can quote it."""
    problem = client.get("/v1/topics/nobodys/queues/0", headers={"X-Request-Id": "mine-2"}).json()
    assert (problem["reason"], problem["request_id"]) == ("TOPIC_NOT_FOUND", "mine-2")
    with Query(str(client.base_url)) as query, pytest.raises(TopicNotFoundError) as refused:
        query.queue("nobodys", 0)
    assert refused.value.facts["request_id"]


def test_an_internal_error_is_logged_and_answered_with_the_request_id(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event `request_failed` leads from a user's report to the traceback."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(StoreReader, "watermark", fail)
    with capture_logs(processors=[merge_contextvars]) as logs:
        answer = client.get("/v1/watermark", headers={"X-Request-Id": "mine-3"})
    assert (answer.status_code, answer.json()["request_id"]) == (500, "mine-3")
    assert answer.headers.get_list("x-request-id") == ["mine-3"]
    (event,) = [event for event in logs if event["event"] == "request_failed"]
    assert event["request_id"] == "mine-3"
