from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.unit.client.fake_query import Reply, fake_query
from tests.unit.client.fake_writer import FakeWriter
from tidemark.client.errors.address_faults import explained, look, speaks_grpc, wrong_address
from tidemark.errors import DeadlineExceededError, DiskFullError, StoreError, WriterUnreachableError
from tidemark.local.local_stack import free_port
from tidemark.tls.credentials import Credentials

PLAIN = Credentials()


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


def test_a_refused_connection_is_a_fault_for_now() -> None:
    """A writer may be starting there."""
    address = f"127.0.0.1:{free_port()}"
    cause = look(address)
    assert cause is not None
    assert not cause.is_final
    assert wrong_address(address, PLAIN) is None


@pytest.mark.parametrize("error", [WriterUnreachableError("no answer", size=3), DeadlineExceededError("too late")])
def test_an_unreached_writer_is_explained_by_an_error_of_the_same_class(error: StoreError) -> None:
    address = f"127.0.0.1:{free_port()}"
    found = explained(error, address, PLAIN)
    assert (type(found), found.facts, found.__cause__) == (type(error), error.facts, error)
    assert error.message in found.message
    assert address in found.message


def test_an_answer_of_the_writer_is_left_as_it_is(http_address: str) -> None:
    error = DiskFullError("the disk is full")
    assert explained(error, http_address, PLAIN) is error


def test_addresses_with_tls_are_left_to_tls(http_address: str) -> None:
    error = WriterUnreachableError("no answer")
    assert explained(error, f"tls://{http_address}", PLAIN) is error
    assert wrong_address(f"tls://{http_address}", PLAIN) is None


def test_a_server_that_says_nothing_yet_has_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts, and is too busy to answer within the look."""
    monkeypatch.setattr("tidemark.client.errors.address_faults._LOOK_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert look(f"127.0.0.1:{silent.getsockname()[1]}") is None
