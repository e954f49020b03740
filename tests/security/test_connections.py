"""Thousands of silent connections: working clients are not affected, and the connections are closed in the end."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import httpx
import pytest

from tests.security.clients import MEBIBYTE, closed_after, connect, idle_connections, memory_of, until_closed
from tidemark.client import Message, Producer
from tidemark.local.local_stack import QUERY, WRITER

from .conftest import Start

WANTED = 10_000
ANSWER_WITHIN_S = 5.0


def test_ten_thousand_idle_connections_do_not_block_other_clients(start: Start, tell: Callable[[str], None]) -> None:
    """Each service has them at once: sends and requests continue, and memory grows only by the sockets."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(WANTED, (files - 1_000) // 2)
    stack = start(HANDSHAKE_TIMEOUT_MS=600_000, QUERY_HEAD_TIMEOUT_MS=600_000)
    with (
        Producer(stack.writer_address, wire="remoting") as producer,
        Producer(stack.writer_address, wire="grpc") as other,
        httpx.Client(base_url=stack.query_url, timeout=60) as client,
    ):
        producer.send("orders", b"before")
        before = {name: memory_of(stack, name) for name in (WRITER, QUERY)}
        with idle_connections(stack.writer_port, count), idle_connections(stack.query_port, count):
            slowest = 0.0
            for number in range(50):
                began = time.monotonic()
                producer.send_batch([Message("orders", b"meanwhile %d" % number)])
                other.send("orders", b"meanwhile %d" % number)
                assert client.get("/v1/status").status_code == 200
                assert httpx.get(f"{stack.query_url}/v1/topics/orders", timeout=60).status_code == 200  # a new one
                slowest = max(slowest, time.monotonic() - began)
            grown = {name: (memory_of(stack, name) - before[name]) // MEBIBYTE for name in before}
        stack.check()
    tell(f"{count:,} idle connections to each service: slowest round {slowest:.3f} s, memory + {grown} MiB")
    assert slowest < ANSWER_WITHIN_S
    assert max(grown.values()) < 500


@pytest.mark.usefixtures("wire")
def test_connections_above_the_limit_are_refused(start: Start) -> None:
    """HTTP answers 429 with a retry time; gRPC closes the connection. Existing connections continue."""
    stack = start(MAX_CONNECTIONS=30)
    with Producer(stack.writer_address) as producer, httpx.Client(base_url=stack.query_url) as client:
        producer.send("orders", b"first")
        assert client.get("/healthz").status_code == 200
        with idle_connections(stack.writer_port, 40) as to_writer, idle_connections(stack.query_port, 40) as to_query:
            assert until_closed(to_writer, 5) >= 10
            _, said = closed_after(to_query[-1], 5)
            assert said.startswith(b"HTTP/1.1 429 ")
            assert b"retry-after: 1\r\n" in said.lower()
            assert b"IN_FLIGHT_LIMIT" in said
            assert producer.send("orders", b"goes on").queue_offset >= 0
            assert client.get("/healthz").status_code == 200
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:  # their places are free again
            if httpx.get(f"{stack.query_url}/healthz").status_code == 200:
                break
        with Producer(stack.writer_address) as another:
            assert another.send("orders", b"another").queue_offset >= 0


def test_idle_connections_are_closed(start: Start) -> None:
    """A new one is closed after the time for a head or a handshake, a used one after the keep-alive time."""
    stack = start(HANDSHAKE_TIMEOUT_MS=1_000, QUERY_HEAD_TIMEOUT_MS=1_000)
    for port in (stack.writer_port, stack.query_port):
        seconds, _ = closed_after(connect(port), 10)
        assert 0.5 < seconds < 5
    used = connect(stack.query_port, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    seconds, said = closed_after(used, 15)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert seconds < 10
