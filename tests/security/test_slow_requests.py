"""Requests that arrive byte by byte, or are larger than allowed."""

from __future__ import annotations

import contextlib
import itertools
import socket
import time

import httpx
import pytest

from tests.security.clients import MEBIBYTE, closed_after, connect, memory_of
from tidemark.local.local_stack import QUERY, WRITER

from .conftest import Start

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD = b"POST /v1/topics/t/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"


def drip(connection: socket.socket, data: bytes, every_s: float) -> float:
    """Send *data* byte by byte; return the seconds until the other side has closed."""
    began = time.monotonic()
    connection.settimeout(every_s)
    with connection, contextlib.suppress(ConnectionError):
        for byte in itertools.cycle(data):
            connection.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                if not connection.recv(4096):
                    break
            if time.monotonic() - began > 30:
                raise AssertionError("still open after 30 s")
    return time.monotonic() - began


def test_a_head_sent_byte_by_byte_times_out(start: Start) -> None:
    """The time limit ends it; another byte does not restart the limit."""
    stack = start(QUERY, QUERY_HEAD_TIMEOUT_MS=1_000)
    assert drip(connect(stack.query_port, b"GET / HTTP/1.1\r\n"), b"X: y\r\n", 0.05) < 3
    assert drip(connect(stack.query_port, b"GET /healthz HTTP/1.1\r\n\r\nGET"), b" ", 0.05) < 3  # the next one, too


def test_a_body_sent_byte_by_byte_times_out(start: Start) -> None:
    """The same limit applies; nothing of it is in the log, which any client could otherwise fill."""
    stack = start(QUERY, QUERY_BODY_TIMEOUT_MS=1_000)
    assert drip(connect(stack.query_port, HEAD), b" ", 0.05) < 3
    assert "rror" not in (stack.logs / "query.log").read_text()


def test_a_client_that_disconnects_within_its_body_is_not_logged(start: Start) -> None:
    stack = start(QUERY)
    connect(stack.query_port, HEAD + b"{").close()
    assert httpx.get(f"{stack.query_url}/healthz").status_code == 200
    assert "rror" not in (stack.logs / "query.log").read_text()


def test_an_http2_preface_sent_byte_by_byte_times_out(start: Start) -> None:
    """These are HTTP/2's first bytes, at the writer."""
    stack = start(WRITER, HANDSHAKE_TIMEOUT_MS=1_000)
    assert drip(connect(stack.writer_port), PREFACE, 0.2) < 4


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 30_000 + b"\r\n",
        b"GET / HTTP/1.1\r\nX" + b"a" * 2_000_000,
    ],
    ids=["line", "header", "many headers", "without end"],
)
def test_too_large_heads_are_refused(start: Start, request_bytes: bytes) -> None:
    """The status is 431 with a problem document; the connection is closed, and the rest is not kept."""
    stack = start(QUERY)
    connection = connect(stack.query_port)
    with contextlib.suppress(ConnectionError):
        connection.sendall(request_bytes)
    _, said = closed_after(connection, 10)
    # nothing: the connection was reset
    assert said == b"" or (said.startswith(b"HTTP/1.1 431 ") and b"HEAD_TOO_LARGE" in said)
    assert httpx.get(f"{stack.query_url}/healthz").status_code == 200


def test_endless_heads_use_bounded_memory(start: Start) -> None:
    """Many such requests run at once, each up to the accepted size."""
    stack = start(QUERY)
    before = memory_of(stack, QUERY)
    for _ in range(100):
        connection = connect(stack.query_port)
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"a" * 4_000_000)
        connection.close()
    assert memory_of(stack, QUERY) - before < 100 * MEBIBYTE
