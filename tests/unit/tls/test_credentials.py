"""TLS credentials of clients: the trusted CAs, and the conditions for TLS."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.certificates import Authority, Pair
from tidemark.client import Producer, Query
from tidemark.errors import TlsFilesError
from tidemark.tls.credentials import Credentials, Target


@pytest.mark.parametrize(
    ("address", "ca", "target"),
    [
        ("writer:8081", None, Target("writer:8081", is_tls=False)),
        ("writer:8081", "/ca.pem", Target("writer:8081", is_tls=True)),
        ("tls://writer:8081", None, Target("writer:8081", is_tls=True)),
        ("tls://[::1]:8081", "/ca.pem", Target("[::1]:8081", is_tls=True)),
    ],
)
def test_grpc_uses_tls_for_a_tls_address_or_a_given_ca(address: str, ca: str | None, target: Target) -> None:
    assert Credentials(ca=ca).target(address) == target


def test_tls_files_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty value counts as unset."""
    for name, value in (("CA", "/ca.pem"), ("CERT", ""), ("KEY", "")):
        monkeypatch.setenv(f"TIDEMARK_TLS_{name}", value)
    assert Credentials.from_environment() == Credentials(ca="/ca.pem")


def test_a_certificate_without_its_key_is_refused(server: Pair) -> None:
    for tls in (Credentials(cert=server.cert), Credentials(key=server.key)):
        with pytest.raises(TlsFilesError, match="certificate and its private key"):
            tls.context()


def test_unusable_tls_files_are_reported_before_a_connection(tmp_path: Path) -> None:
    """The error names the file."""
    tls = Credentials(ca=tmp_path / "missing.pem")
    for connect in (
        lambda: Query("https://127.0.0.1:9", credentials=tls),
        lambda: Producer("127.0.0.1:9", credentials=tls),
    ):
        with pytest.raises(TlsFilesError, match=r"missing\.pem: cannot be read"):
            connect()


def test_a_context_checks_the_name_and_the_ca(authority: Authority, server: Pair) -> None:
    """The exception is a health check of the own host."""
    context = Credentials(authority.ca, server.cert, server.key).context()
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert len(context.get_ca_certs()) == 1
    assert Credentials().context(trusts_all=True).verify_mode is ssl.CERT_NONE
