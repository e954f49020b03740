"""The REST helper: what it asks, and what it makes of problems."""

from __future__ import annotations

import httpx
import pytest

from tidemark.client import Query
from tidemark.errors import OffsetTooSmallError, StoreError, UnavailableError


def _query(answer: httpx.Response | Exception, asked: list[httpx.Request] | None = None) -> Query:
    def respond(request: httpx.Request) -> httpx.Response:
        if asked is not None:
            asked.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Query("http://query", transport=httpx.MockTransport(respond))


def test_parameters_that_are_not_given_are_not_asked() -> None:
    """None is absent; a list is repeated."""
    asked: list[httpx.Request] = []
    with _query(httpx.Response(200, json={"messages": []}), asked) as query:
        assert query.pull("t", 2, "earliest", tag=["A", "B"], wait_ms=None) == {"messages": []}
    assert str(asked[0].url) == "http://query/v1/topics/t/queues/2/messages?offset=earliest&tag=A&tag=B"


def test_a_problem_is_raised_by_its_reason_with_its_facts() -> None:
    """RFC 9457's own members are no facts."""
    problem = {"type": "about:blank", "title": "Gone", "status": 410, "reason": "OFFSET_TOO_SMALL", "min_offset": 7}
    with _query(httpx.Response(410, json=problem)) as query, pytest.raises(OffsetTooSmallError) as raised:
        query.pull("t", 0, 1)
    assert raised.value.facts == {"min_offset": 7}


def test_an_error_that_is_no_problem_is_a_store_error() -> None:
    """A proxy may answer anything."""
    with _query(httpx.Response(502, text="<html>")) as query, pytest.raises(StoreError, match="HTTP 502"):
        query.watermark()


def test_nobody_answering_is_unavailable() -> None:
    """With the address in the text."""
    with _query(httpx.ConnectError("refused")) as query, pytest.raises(UnavailableError, match="http://query"):
        query.watermark()
