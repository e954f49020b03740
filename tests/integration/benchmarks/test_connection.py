"""The benchmarks' own HTTP client against the query service."""

from __future__ import annotations

import select

import httpx
import orjson
import pytest

from benchmarks.connection import Connection
from tests.integration.conftest import Served

pytestmark = pytest.mark.integration
_PULL = "/v1/topics/orders/queues/0/messages?offset="


def test_answers_larger_than_the_first_buffer_are_whole(served: Served) -> None:
    """A smaller answer after a large one has no bytes of it."""
    served.put(b"small", *[b"x" * 60_000] * 4)
    records = {"accept": "application/octet-stream"}
    with Connection(served.url.removeprefix("http://")) as connection:
        for path in (f"{_PULL}0", f"{_PULL}0&max_messages=1"):
            expected = httpx.get(served.url + path, headers=records).content
            assert connection.get(path, records["accept"]) == expected


def test_a_problem_is_raised_with_its_text(served: Served) -> None:
    """Otherwise a failed request would count as a fast one."""
    with (
        Connection(served.url.removeprefix("http://")) as connection,
        pytest.raises(RuntimeError, match="TOPIC_NOT_FOUND"),
    ):
        connection.get("/v1/topics/none/queues/0")


def test_a_connection_becomes_readable_with_its_answer(served: Served) -> None:
    """Thousands of readers wait in one `epoll`."""
    served.put(b"1")
    with Connection(served.url.removeprefix("http://")) as connection, select.epoll() as poll:
        poll.register(connection.fileno(), select.EPOLLIN)
        connection.ask(f"{_PULL}1&wait_ms=30000&body_encoding=utf8")
        assert poll.poll(0.3) == []
        served.put(b"2")
        assert poll.poll(20) == [(connection.fileno(), select.EPOLLIN)]
        assert [message["body"] for message in orjson.loads(connection.answer())["messages"]] == ["2"]
