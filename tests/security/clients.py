"""Hostile clients, and measurements of a service's memory."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import psutil

from tidemark.local.local_stack import LocalStack

MEBIBYTE = 1 << 20


def connect(port: int, data: bytes = b"", *, receive_buffer: int | None = None) -> socket.socket:
    """Return a connection to a local port that has sent *data*."""
    connection = socket.socket()
    if receive_buffer is not None:  # set before the connection is made, because it determines the window
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(20)
    connection.connect(("127.0.0.1", port))
    connection.sendall(data)
    return connection


@contextlib.contextmanager
def idle_connections(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Open *count* connections that send nothing."""
    connections: list[socket.socket] = []
    try:
        connections.extend(connect(port) for _ in range(count))
        yield connections
    finally:
        for connection in connections:
            connection.close()


def closed_after(connection: socket.socket, within_s: float) -> tuple[float, bytes]:
    """Return the seconds until the other side closes, and its data; AssertionError if it does not close in time."""
    began, said = time.monotonic(), b""
    connection.settimeout(within_s)
    with connection, contextlib.suppress(ConnectionError):
        try:
            while piece := connection.recv(65_536):
                said += piece
        except TimeoutError:
            raise AssertionError(f"still open after {within_s} s") from None
    return time.monotonic() - began, said


def memory_of(stack: LocalStack, service: str) -> int:
    """Return the service's memory in bytes."""
    pid = stack.services[service].pid
    return int(psutil.Process(pid).memory_info().rss)


def until_closed(connections: list[socket.socket], within_s: float) -> int:
    """Return the number of connections that the other side has closed by then."""
    deadline = time.monotonic() + within_s
    left = set(connections)
    while left and time.monotonic() < deadline:
        for connection in list(left):
            connection.setblocking(False)
            try:
                if not connection.recv(65_536):
                    left.discard(connection)
            except BlockingIOError:
                pass
            except ConnectionError:
                left.discard(connection)
        time.sleep(0.1)
    return len(connections) - len(left)
