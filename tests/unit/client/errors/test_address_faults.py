from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.fixed_ports import fixed_port
from tests.unit.client.fake_query import Reply, fake_query
from tests.unit.client.fake_writer import FakeWriter
from tidemark.client.errors.address_faults import explained, look, speaks_grpc, wrong_address
from tidemark.errors import DeadlineExceededError, DiskFullError, StoreError, WriterUnreachableError
from tidemark.tls.credentials import Credentials

PLAIN = Credentials()


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Run a server that sends *answer* to its first client, and yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join()


@pytest.fixture(scope="module")
def http_address() -> Iterator[str]:
    with fake_query(lambda _: Reply()) as fake:
        yield fake.url.removeprefix("http://")


def test_a_writer_has_no_fault(writer: FakeWriter) -> None:
    assert look(writer.address) is None
    assert speaks_grpc("127.0.0.1", writer.port)


def test_a_service_of_another_protocol_is_a_final_fault(http_address: str) -> None:
    cause = look(http_address)
    assert cause is not None
    assert cause.is_final
    assert "does not speak gRPC" in str(cause)
    assert not speaks_grpc("127.0.0.1", int(http_address.rpartition(":")[2]))
    error = wrong_address(http_address, PLAIN)
    assert error is not None
    assert error.facts == {"address": http_address}


def test_a_refused_connection_is_a_temporary_fault() -> None:
    """A writer may be starting there."""
    address = f"127.0.0.1:{fixed_port()}"
    cause = look(address)
    assert cause is not None
    assert not cause.is_final
    assert wrong_address(address, PLAIN) is None


@pytest.mark.parametrize("answer", [b"HTTP", b"\x15\x03\x03" + bytes(9)], ids=["short", "a TLS alert"])
def test_an_answer_that_may_be_a_writers_is_no_fault(answer: bytes) -> None:
    """A server that ends may send a part of its answer; TLS has errors of its own."""
    with answering(answer) as address:
        assert look(address) is None


@pytest.mark.parametrize(("answer", "is_http"), [(b"HTTP/1.1 400 Bad Request\r\n", True), (b"+OK ready\r\n", False)])
def test_a_service_that_speaks_http_1_is_named(answer: bytes, is_http: bool) -> None:
    """The query service's address is the most likely mistake."""
    with answering(answer) as address:
        cause = look(address)
    assert ("HTTP/1, as the query service does" in str(cause)) is is_http
    assert cause is not None


@pytest.mark.parametrize(("number", "is_final"), [(socket.EAI_NONAME, True), (socket.EAI_AGAIN, False)])
def test_an_unknown_host_is_final_unless_the_name_server_may_answer_later(
    monkeypatch: pytest.MonkeyPatch, number: int, is_final: bool
) -> None:
    def resolve(*given: object, **more: object) -> None:
        raise socket.gaierror(number, "no such host")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    cause = look("writer.example:8081")
    assert cause is not None
    assert cause.is_final is is_final
    assert "'writer.example' is unknown" in str(cause)


@pytest.mark.parametrize("error", [WriterUnreachableError("no answer", size=3), DeadlineExceededError("too late")])
def test_the_error_for_an_unreachable_writer_keeps_its_class_and_names_the_address(error: StoreError) -> None:
    address = f"127.0.0.1:{fixed_port()}"
    found = explained(error, address, PLAIN)
    assert (type(found), found.facts, found.__cause__) == (type(error), error.facts, error)
    assert error.message in found.message
    assert address in found.message


def test_an_error_that_the_writer_returned_is_unchanged(http_address: str) -> None:
    error = DiskFullError("the disk is full")
    assert explained(error, http_address, PLAIN) is error


def test_addresses_with_tls_are_not_probed(http_address: str) -> None:
    error = WriterUnreachableError("no answer")
    assert explained(error, f"tls://{http_address}", PLAIN) is error
    assert wrong_address(f"tls://{http_address}", PLAIN) is None


def test_a_server_that_is_silent_has_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts, and is too busy to answer within the look."""
    monkeypatch.setattr("tidemark.client.errors.address_faults.LOOK_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert look(f"127.0.0.1:{silent.getsockname()[1]}") is None
