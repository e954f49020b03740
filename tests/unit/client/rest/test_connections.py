"""Kept-alive connections to one service."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.certificates import Authority
from tests.unit.client.echo_service import echo_service
from tests.unit.client.rest.test_query import IdleServer
from tests.unit.client.test_own_process import is_true_in_a_fork
from tests.waiting import until
from tidemark.client.rest.connections import Connections, SentRequest
from tidemark.errors import ForkedProcessError, QueryUnreachableError, TlsFailedError
from tidemark.tls.credentials import Credentials

TIMEOUT_S = 20
PLAIN = Credentials()


@pytest.fixture
def address() -> Iterator[str]:
    with echo_service() as made:
        yield made


@contextlib.contextmanager
def connected(url: str, credentials: Credentials = PLAIN, **options: Any) -> Iterator[Connections]:
    connections = Connections(url, timeout_s=TIMEOUT_S, credentials=credentials, **options)
    try:
        yield connections
    finally:
        connections.close()


def echo(asked: SentRequest) -> Any:
    return orjson.loads(asked.answer().body)


def test_a_get_has_its_parameters_and_shows_the_token(address: str) -> None:
    """None is left out, and a list is repeated."""
    with connected(f"http://{address}/below/", Credentials(token="secret")) as connections:
        received = echo(connections.ask("/v1/x", {"a": None, "b": 1, "tag": ["one two", "é"]}, "text/plain"))
    assert (received["method"], received["body"]) == ("GET", "")
    assert received["path"] == "/below/v1/x?b=1&tag=one+two&tag=%C3%A9"
    assert received["headers"]["accept"] == "text/plain"
    assert received["headers"]["authorization"] == "Bearer secret"


@pytest.mark.parametrize("body", [None, b'{"a":1}'])
def test_only_a_request_with_a_body_declares_json(address: str, body: bytes | None) -> None:
    with connected(f"http://{address}") as connections:
        received = echo(connections.send("PUT", "/x", body, "application/json"))
    assert received["body"].encode() == (body or b"")
    assert received["headers"].get("content-type") == (None if body is None else "application/json")
    assert "authorization" not in received["headers"]


def test_concurrent_requests_have_connections_of_their_own_of_which_a_few_are_kept(address: str) -> None:
    with connected(f"http://{address}", kept=1) as connections:
        waves = []
        for _ in range(2):
            asked = [connections.ask("/x", {}, "*/*") for _ in range(3)]
            waves.append({echo(one)["connection"] for one in asked})
    assert [len(wave) for wave in waves] == [3, 3]
    assert len(waves[0] & waves[1]) == 1


def test_a_connection_whose_answer_was_discarded_is_not_used_again(address: str) -> None:
    """The rest of the answer would be read as the beginning of the next one."""
    with connected(f"http://{address}") as connections:
        first = echo(connections.ask("/x", {}, "*/*"))["connection"]
        discarded = connections.ask("/x", {}, "*/*")
        discarded.close()
        assert discarded.fileno() == -1
        assert echo(connections.ask("/x", {}, "*/*"))["connection"] != first


def test_an_answer_that_has_arrived_makes_the_descriptor_readable(address: str) -> None:
    """A caller waits for several answers with one `select`."""
    with connected(f"http://{address}") as connections:
        asked = connections.ask("/x", {}, "*/*")
        assert select.select([asked.fileno()], [], [], TIMEOUT_S)[0] == [asked.fileno()]
        assert asked.answer().status == 200


def test_a_connection_that_the_service_has_closed_is_replaced_before_a_request_is_sent() -> None:
    """So even a request that must not be repeated succeeds."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(2):
                connection, _ = listening.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        threading.Thread(target=serve, daemon=True).start()
        with connected(f"http://127.0.0.1:{listening.getsockname()[1]}") as connections:
            first = connections.send("POST", "/x", None, "*/*")
            assert first.answer().status == 200
            until(lambda: select.select([first.fileno()], [], [], 0)[0])  # the end of the connection has arrived
            assert connections.send("POST", "/x", None, "*/*").answer().status == 200


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_caller_may_say_whether_a_request_is_repeated(method: str) -> None:
    """The service closes the connection at its second request, without an answer."""
    server = IdleServer()

    def request(*, is_repeatable: bool) -> SentRequest:
        if method == "GET":
            return connections.ask("/x", {}, "*/*", is_repeatable=is_repeatable)
        return connections.send("POST", "/x", None, "*/*", is_repeatable=is_repeatable)

    with contextlib.closing(server), connected(server.url) as connections:
        for _ in range(2):
            assert request(is_repeatable=True).answer().status == 200
        with pytest.raises(QueryUnreachableError):
            request(is_repeatable=False).answer()
    assert server.requests == [method] * 2


def test_a_forked_process_is_refused_before_it_writes_into_a_shared_connection() -> None:
    connections = Connections("http://127.0.0.1:1", timeout_s=TIMEOUT_S, credentials=PLAIN)

    def is_refused() -> bool:
        with pytest.raises(ForkedProcessError):
            connections.get("/x", {}, "*/*")
        return True

    assert is_true_in_a_fork(is_refused)


def test_a_service_with_tls_is_reached_by_https_alone(authority: Authority) -> None:
    pair = authority.issue("query")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    with echo_service(context) as address:
        with connected(f"https://{address}", Credentials(ca=authority.ca)) as connections:
            assert connections.get("/x", {}, "*/*").status == 200
        with connected(f"http://{address}") as connections, pytest.raises(TlsFailedError, match="write https://"):
            connections.get("/x", {}, "*/*")
