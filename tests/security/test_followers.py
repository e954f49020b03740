"""Thousands of open followed answers, and readers that request much and read nothing."""

from __future__ import annotations

import contextlib
import resource
import selectors
import socket
import time
from collections.abc import Callable, Iterator

import httpx

from tests.pipeline_runs import build, plan_of
from tests.security.clients import MEBIBYTE, connect, memory_of, until_closed
from tidemark.client import Producer
from tidemark.local.local_stack import QUERY, LocalStack

from .conftest import Start

WANTED = 10_000
FOLLOW = b"GET /v1/topics/orders/queues/0/messages?follow=true&offset=%b HTTP/1.1\r\nHost: x\r\n\r\n"
ANSWER_WITHIN_S = 5.0


@contextlib.contextmanager
def followers(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Open *count* answers that begin with the next message."""
    with contextlib.ExitStack() as open_ones:
        connections = [open_ones.enter_context(connect(port, FOLLOW % b"latest")) for _ in range(count)]
        for connection in connections:
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
        yield connections


def received_by(connections: list[socket.socket], text: bytes, within_s: float) -> int:
    """Return the number of connections on which *text* has arrived by then."""
    selector, seen = selectors.DefaultSelector(), dict.fromkeys(connections, b"")
    for connection in connections:
        connection.setblocking(False)
        selector.register(connection, selectors.EVENT_READ, connection)
    deadline, found = time.monotonic() + within_s, 0
    while found < len(connections) and time.monotonic() < deadline:
        for key, _ in selector.select(0.1):
            connection = key.data
            seen[connection] += connection.recv(65_536)
            if text in seen[connection]:
                found += 1
                selector.unregister(connection)
    return found


def test_ten_thousand_followers_get_a_message_and_do_not_block_other_clients(
    start: Start, tell: Callable[[str], None]
) -> None:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(WANTED, files - 1_000)
    stack = start(QUERY_MAX_WAITING=count, QUERY_MAX_WAITING_PER_CLIENT=count)
    with Producer(stack.writer_address) as producer, httpx.Client(base_url=stack.query_url, timeout=60) as client:
        producer.send("orders", b"before", queue_id=0)
        build(plan_of(stack.data, shards=1))
        before = memory_of(stack, QUERY)
        with followers(stack.query_port, count) as connections:
            slowest = 0.0
            for _ in range(20):
                began = time.monotonic()
                assert client.get("/v1/status").status_code == 200
                slowest = max(slowest, time.monotonic() - began)
            producer.send("orders", b"meanwhile", queue_id=0, key="the-message")
            began = time.monotonic()
            build(plan_of(stack.data, shards=1))
            assert received_by(connections, b"the-message", 120) == count
            passed = time.monotonic() - began
            grown = (memory_of(stack, QUERY) - before) // MEBIBYTE
            refusal = httpx.get(f"{stack.query_url}/v1/pull?topic=orders&follow=true", timeout=60)
            assert (refusal.status_code, refusal.json()["reason"]) == (429, "IN_FLIGHT_LIMIT")
        stack.check()
    tell(
        f"{count:,} followers: slowest request {slowest:.3f} s, a message reached all after {passed:.1f} s, "
        f"query's memory + {grown} MiB"
    )
    assert slowest < ANSWER_WITHIN_S
    assert grown < 1_000


def test_followers_that_read_nothing_are_bounded_and_disconnected(start: Start, tell: Callable[[str], None]) -> None:
    """Each could have 64 MiB; in the end all are disconnected, and others are served meanwhile."""
    limit = 64 * MEBIBYTE
    stack = start(QUERY_MAX_UNTAKEN_BYTES=limit, QUERY_WRITE_TIMEOUT_MS=4_000)
    fill(stack)
    before = memory_of(stack, QUERY)
    with contextlib.ExitStack() as open_ones:
        greedy = [
            open_ones.enter_context(connect(stack.query_port, FOLLOW % b"earliest", receive_buffer=4096))
            for _ in range(200)
        ]
        most, until = 0, time.monotonic() + 20  # the time to send, five times
        while time.monotonic() < until:
            most = max(most, memory_of(stack, QUERY))
            assert httpx.get(f"{stack.query_url}/v1/status", timeout=60).status_code == 200
        assert until_closed(greedy, 20) == len(greedy)
    tell(f"200 followers that read nothing: query's memory + {(most - before) // MEBIBYTE} MiB")
    assert most - before < 4 * limit
    with httpx.stream("GET", f"{stack.query_url}/v1/pull?topic=orders&follow=true&max_messages=64") as answer:
        assert sum(b'"queue_offset"' in line.encode() for line in answer.iter_lines()) == 64


def fill(stack: LocalStack) -> None:
    """Store 64 MiB in one queue, visible."""
    with Producer(stack.writer_address) as producer:
        for _ in range(64):
            producer.send("orders", bytes(MEBIBYTE - 1_000), queue_id=0)
    build(plan_of(stack.data, shards=1))
