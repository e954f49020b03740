"""Unlimited numbers of groups, members, waiting requests, tags and keys: each has a limit, and an error with a reason.

Each row of the report shows memory, file size and response time before and after.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import httpx
import pytest

from tests.security.clients import MEBIBYTE, connect, memory_of
from tidemark.local.local_stack import QUERY, LocalStack

from .conftest import Start

MOST = 1_000
NAMES = 10_000
AT_ONCE = 100
GROWTH = 30 * MEBIBYTE


def request_of(method: str, path: str, body: str) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return f"{head}{body}".encode()


def ask(port: int, requests: Iterable[bytes]) -> Counter[int]:
    """Send all requests over one connection, many at a time; return the number of responses of each status."""
    statuses: Counter[int] = Counter()
    waiting = iter(requests)
    with connect(port) as connection:
        while some := [request for _, request in zip(range(AT_ONCE), waiting, strict=False)]:
            connection.sendall(b"".join(some))
            received = b""
            while received.count(b"HTTP/1.1 ") < len(some) or not received.rstrip().endswith(b"}"):
                piece = connection.recv(1 << 20)
                assert piece, received[-500:]
                received += piece
            statuses.update(int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:])
    return statuses


def answer_ms(stack: LocalStack, path: str) -> float:
    """Return the median time of a few responses."""
    times = []
    with httpx.Client(base_url=stack.query_url) as client:
        for _ in range(9):
            began = time.perf_counter()
            assert client.get(path).status_code == 200
            times.append(time.perf_counter() - began)
    return sorted(times)[4] * 1000


@pytest.fixture
def row(tell: Callable[[str], None]) -> Callable[[str, LocalStack, Callable[[], Counter[int]]], Counter[int]]:
    """Return row(what, stack, deed), which runs *deed*, reports memory, file size and time, and checks the memory."""

    def report(what: str, stack: LocalStack, deed: Callable[[], Counter[int]]) -> Counter[int]:
        file = stack.data / "config" / "consumerOffset.json"

        def facts() -> tuple[int, int, float]:
            size = file.stat().st_size if file.exists() else 0
            return memory_of(stack, QUERY), size, answer_ms(stack, "/v1/topics/orders")

        before = facts()
        statuses = deed()
        after = facts()
        tell(
            f"{what}: memory {before[0] / MEBIBYTE:.0f} -> {after[0] / MEBIBYTE:.0f} MiB, offsets file "
            f"{before[1]:,} -> {after[1]:,} bytes, answer {before[2]:.1f} -> {after[2]:.1f} ms, {dict(statuses)}"
        )
        assert after[0] - before[0] < GROWTH
        return statuses

    return report


Row = Callable[[str, LocalStack, Callable[[], Counter[int]]], Counter[int]]


def with_topic(stack: LocalStack) -> LocalStack:
    httpx.post(f"{stack.query_url}/v1/topics", json={"topic": "orders", "queues": 1}, timeout=30).raise_for_status()
    return stack


def test_offsets_of_unknown_groups_are_limited(start: Start, row: Row) -> None:
    stack = with_topic(start(QUERY_MAX_OFFSETS=MOST))

    def puts(numbers: range) -> Iterator[bytes]:
        for number in numbers:
            yield request_of("PUT", f"/v1/groups/g{number}/topics/orders/queues/0/offset", '{"offset": 0}')

    assert ask(stack.query_port, puts(range(MOST))) == {200: MOST}
    statuses = row(
        f"offsets of {NAMES:,} groups, {MOST:,} kept", stack, lambda: ask(stack.query_port, puts(range(NAMES)))
    )
    assert statuses == {200: MOST, 429: NAMES - MOST}
    assert (stack.data / "config" / "consumerOffset.json").stat().st_size < 100 * MOST


def test_members_that_never_return_are_limited_and_expire(start: Start, row: Row) -> None:
    """They are limited by group and by session, and make room when it ends."""
    stack = with_topic(start(QUERY_MAX_GROUPS=MOST, QUERY_MAX_GROUP_MEMBERS=50))
    body = '{"topics": ["orders"], "session_timeout_ms": 300000}'
    short = '{"topics": ["orders"], "session_timeout_ms": 1000}'

    def joins(names: Iterable[str], content: str = body) -> Iterator[bytes]:
        return (request_of("POST", f"/v1/groups/{name}/members", content) for name in names)

    one = row("200 members of one group, 50 kept", stack, lambda: ask(stack.query_port, joins(["g"] * 200)))
    assert one == {201: 50, 429: 150}
    assert ask(stack.query_port, joins((f"s{number}" for number in range(100)), short)) == {201: 100}
    deadline = time.monotonic() + 60
    while len(httpx.get(f"{stack.query_url}/v1/groups").json()["groups"]) > 1:
        assert time.monotonic() < deadline, "members stay after their session"
        time.sleep(0.2)
    many = row(
        f"members of {NAMES:,} groups, {MOST:,} kept",
        stack,
        lambda: ask(stack.query_port, joins(f"h{number}" for number in range(NAMES))),
    )
    assert many == {201: MOST - 1, 429: NAMES - MOST + 1}


def test_waiting_requests_are_limited(start: Start, row: Row) -> None:
    """Each connection waits for messages that do not come."""
    stack = with_topic(start(QUERY_MAX_WAITING=100, QUERY_MAX_WAITING_PER_CLIENT=100))
    poll = request_of("GET", "/v1/topics/orders/queues/0/messages?offset=0&wait_ms=20000", "")

    def wait() -> Counter[int]:
        connections = [connect(stack.query_port, poll) for _ in range(300)]
        for connection in connections:
            connection.settimeout(60)
        statuses = Counter(int(connection.recv(1 << 16)[9:12]) for connection in connections)
        for connection in connections:
            connection.close()
        return statuses

    assert row("300 requests that wait, 100 at once", stack, wait) == {200: 100, 429: 200}


def test_tags_keys_and_topics_in_requests_add_no_labels(start: Start, row: Row) -> None:
    """Pulls and searches have distinct ones."""
    stack = with_topic(start())

    def series() -> int:
        text = httpx.get(f"{stack.query_url}/metrics").text
        return sum(not line.startswith("#") for line in text.splitlines())

    def gets(numbers: range) -> Iterator[bytes]:
        for number in numbers:
            yield request_of("GET", f"/v1/topics/orders/queues/0/messages?tag=t{number}", "")
            yield request_of("GET", f"/v1/topics/orders/messages?key=k{number}", "")

    assert ask(stack.query_port, gets(range(100))) == {200: 200}
    answer_ms(stack, "/v1/topics/orders")
    httpx.get(f"{stack.query_url}/metrics")
    labels = series()
    statuses = row(
        f"{NAMES:,} tags and keys in questions",
        stack,
        lambda: ask(stack.query_port, gets(range(100, 100 + NAMES // 2))),
    )
    assert statuses == {200: NAMES}
    assert series() == labels
