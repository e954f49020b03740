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
def test_grpc_speaks_tls_where_the_address_says_so_or_a_ca_is_given(
    address: str, ca: str | None, target: Target
) -> None:
    assert Credentials(ca=ca).target(address) == target


def test_the_environment_names_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty value counts as unset."""
    for name, value in (("CA", "/ca.pem"), ("CERT", ""), ("KEY", "")):
        monkeypatch.setenv(f"TIDEMARK_TLS_{name}", value)
    assert Credentials.from_environment() == Credentials(ca="/ca.pem")


def test_a_certificate_goes_with_its_key(server: Pair) -> None:
    for tls in (Credentials(cert=server.cert), Credentials(key=server.key)):
        with pytest.raises(TlsFilesError, match="certificate and its private key"):
            tls.context()


def test_files_that_cannot_be_used_are_told_before_anything_is_dialled(tmp_path: Path) -> None:
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
