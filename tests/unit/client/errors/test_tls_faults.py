from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.unit.client.fake_writer import FakeWriter
from tidemark.client.errors.tls_faults import with_cause
from tidemark.errors import DiskFullError, TlsFailedError, WriterUnreachableError
from tidemark.tls.credentials import Credentials

UNREACHED = WriterUnreachableError("no answer")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "ca", "own")


@pytest.fixture(scope="module")
def tls_address(authority: Authority) -> Iterator[str]:
    """The address of a server that speaks TLS and says nothing after the handshake."""
    pair = authority.issue("server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    context.set_alpn_protocols(["h2"])
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = server.accept()
                    with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as secure:
                        secure.recv(1)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def test_a_plaintext_client_of_a_tls_server_gets_an_error_that_names_tls(tls_address: str) -> None:
    error = with_cause(UNREACHED, tls_address, Credentials())
    assert isinstance(error, TlsFailedError)
    assert error.facts == {"address": tls_address}
    assert "tls://host:port" in error.message


def test_a_certificate_of_an_unknown_authority_is_reported(tls_address: str, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "other")
    error = with_cause(UNREACHED, f"tls://{tls_address}", Credentials(ca=other.ca))
    assert isinstance(error, TlsFailedError)
    assert "not trusted" in error.message


def test_an_error_over_working_tls_is_unchanged(tls_address: str, authority: Authority) -> None:
    assert with_cause(UNREACHED, f"tls://{tls_address}", Credentials(ca=authority.ca)) is UNREACHED


def test_a_tls_client_of_a_plaintext_writer_gets_a_tls_error(writer: FakeWriter, authority: Authority) -> None:
    error = with_cause(UNREACHED, f"tls://{writer.address}", Credentials(ca=authority.ca))
    assert isinstance(error, TlsFailedError)


def test_an_error_that_the_writer_returned_is_unchanged(tls_address: str) -> None:
    error = DiskFullError("the disk is full")
    assert with_cause(error, tls_address, Credentials()) is error
