"""HTTP answers as bytes: in pieces, malformed, cut off, and more than an answer."""

from __future__ import annotations

import contextlib
import gc
import socket
import threading
import weakref
from collections.abc import Iterator

import pytest

from tidemark.client.rest.http_connection import HttpConnection, HttpFaultError, HttpResponse

TIMEOUT_S = 20
OK = b"HTTP/1.1 200 OK\r\n"
TWO_BYTES = OK + b"Content-Length: 2\r\n\r\nhi"


@contextlib.contextmanager
def answered_with(*pieces: bytes) -> Iterator[HttpConnection]:
    """A connection whose request is answered with *pieces*, one packet each; then the server closes it."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        served, _ = listening.accept()
        with served:
            served.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            served.recv(1 << 16)
            with contextlib.suppress(OSError):  # the client may have seen enough
                for piece in pieces:
                    served.sendall(piece)

    thread = threading.Thread(target=serve)
    thread.start()
    connection = HttpConnection("127.0.0.1", listening.getsockname()[1], timeout_s=TIMEOUT_S)
    try:
        yield connection
    finally:
        connection.close()
        thread.join()
        listening.close()


def ask(connection: HttpConnection) -> HttpResponse:
    connection.request("GET", "/x", None, {})
    return connection.response()


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize(
    "raw",
    [
        TWO_BYTES,
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + TWO_BYTES,
        OK + b"Connection: close\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\n\r\nhi",
    ],
    ids=["length", "chunks", "interim", "until-closed", "http-1.0"],
)
def test_a_body_has_a_length_chunks_or_the_end_of_the_connection(raw: bytes, size: int) -> None:
    with answered_with(*(raw[at : at + size] for at in range(0, len(raw), size))) as connection:
        response = ask(connection)
        assert (response.status, bytes(response.read())) == (200, b"hi")
        assert "Link" not in response.headers


def test_headers_have_one_form_and_repeated_ones_are_joined() -> None:
    raw = b"HTTP/1.1 404 Not Found\r\ncontent-TYPE: a/b\r\nvary: Accept\r\nVary: \xe9\r\nContent-Length: 0\r\n\r\n"
    with answered_with(raw) as connection:
        response = ask(connection)
    assert response.status == 404
    assert response.headers == {"Content-Type": "a/b", "Vary": "Accept, é", "Content-Length": "0"}
    assert bytes(response.read()) == b""


@pytest.mark.parametrize(
    ("raw", "will_close"),
    [
        (TWO_BYTES, False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", False),
        (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", True),
        (TWO_BYTES + b"more", True),
        (TWO_BYTES + TWO_BYTES, True),
    ],
    ids=["kept", "no-content", "close", "http-1.0", "more", "a-second-answer"],
)
def test_a_connection_is_kept_only_after_exactly_one_answer(raw: bytes, will_close: bool) -> None:
    with answered_with(raw) as connection:
        response = ask(connection)
        assert bytes(response.read()) in {b"hi", b""}
        assert response.will_close is will_close


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"\x00\x00\x12\x04gRPC", "not an HTTP answer"),
        (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "not an HTTP answer"),
        (OK + b"Content-Length: 3\r\n\r\nhi", "ended after 2 of 3 bytes"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nh\r\n", "before its last chunk"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nx\r\n", "not an HTTP answer"),
        (OK + b"Content-Le", "ended in its head"),
        (OK + b"X: %s\r\n" % (b"y" * (70 << 10)), "larger than 65536 bytes"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "changes the protocol"),
    ],
    ids=["binary", "two-lengths", "cut", "cut-chunks", "wrong-chunk", "cut-head", "long-head", "upgrade"],
)
def test_a_faulty_answer_is_an_error(raw: bytes, fault: str) -> None:
    with answered_with(raw) as connection, pytest.raises(HttpFaultError, match=fault):
        ask(connection).read()


def test_an_answer_that_was_read_needs_no_garbage_collection() -> None:
    """A cycle of references would keep each answer until a collection."""
    with answered_with(TWO_BYTES) as connection:
        response = ask(connection)
        response.read()
    gone = weakref.ref(response)
    gc.disable()
    try:
        del response
        assert gone() is None
    finally:
        gc.enable()


def test_a_connection_that_ends_without_an_answer_was_closed_as_idle() -> None:
    with answered_with() as connection, pytest.raises(ConnectionResetError):
        ask(connection)


@pytest.mark.parametrize(
    ("target", "headers"),
    [("/a b", {}), ("/a\r\nX: y", {}), ("/é", {}), ("/", {"A": "b\r\nX: y"}), ("/", {"A": "b\0"})],
)
def test_a_request_that_would_become_another_is_refused_before_it_connects(
    target: str, headers: dict[str, str]
) -> None:
    connection = HttpConnection("127.0.0.1", 1, timeout_s=TIMEOUT_S)
    with pytest.raises(ValueError, match=r"percent-encoded|header A"):
        connection.request("GET", target, None, headers)


@pytest.mark.parametrize(
    ("host", "port", "named"),
    [("127.0.0.1", 80, "127.0.0.1"), ("x.y", None, "x.y"), ("::1", 8080, "[::1]:8080"), ("x", 443, "x:443")],
)
def test_the_host_header_names_other_ports_than_the_default(host: str, port: int | None, named: str) -> None:
    client, server = socket.socketpair()
    with client, server:
        connection = HttpConnection(host, port, timeout_s=TIMEOUT_S)
        connection.sock = client
        connection.request("POST", "/", None, {})
        assert server.recv(1 << 16) == (
            b"POST / HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: identity\r\nContent-Length: 0\r\n\r\n" % named.encode()
        )
