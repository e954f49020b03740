"""Loading of a service's PEM files, and the errors of invalid ones."""

from __future__ import annotations

import ssl
import subprocess
import time
from pathlib import Path

import pytest

from tests.certificates import Authority, Pair
from tidemark.errors import TlsFilesError
from tidemark.tls.server_files import ClientAuth, LoadedCertificates, ServerFiles


def load(pair: Pair, client_ca: Path | None = None, client_auth: ClientAuth = ClientAuth.NONE) -> LoadedCertificates:
    return ServerFiles(pair.cert, pair.key, client_ca, client_auth).load()


def refusal(pair: Pair, client_ca: Path | None = None) -> TlsFilesError:
    """Return the error; it contains no line of the files."""
    with pytest.raises(TlsFilesError) as refused:
        load(pair, client_ca, ClientAuth.REQUIRED if client_ca else ClientAuth.NONE)
    assert "\n" not in refused.value.message
    assert "BEGIN" not in refused.value.message
    return refused.value


def test_valid_tls_files_are_loaded_with_name_and_expiry(server: Pair) -> None:
    """Health checks need the name, alarms the expiry; TLS 1.2 is the minimum version."""
    loaded = load(server)
    assert (loaded.cert, loaded.key) == (server.cert.read_bytes(), server.key.read_bytes())
    assert loaded.leaf.name == "localhost"
    assert loaded.leaf.expires_s > time.time() + 1e9
    assert loaded.context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert loaded.context.verify_mode is ssl.CERT_NONE


@pytest.mark.parametrize(
    ("client_auth", "mode"), [(ClientAuth.OPTIONAL, ssl.CERT_OPTIONAL), (ClientAuth.REQUIRED, ssl.CERT_REQUIRED)]
)
def test_client_certificates_are_verified_as_configured(
    authority: Authority, server: Pair, client_auth: ClientAuth, mode: ssl.VerifyMode
) -> None:
    loaded = load(server, authority.ca, client_auth)
    assert loaded.context.verify_mode is mode
    assert loaded.client_ca == authority.ca.read_bytes()
    assert loaded.context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_missing_tls_files_are_reported(server: Pair, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    for pair, client_ca in ((Pair(missing, server.key), None), (Pair(server.cert, missing), None), (server, missing)):
        assert refusal(pair, client_ca).message == f"{missing}: cannot be read: No such file or directory"


def test_tls_files_of_another_kind_are_reported(server: Pair, tmp_path: Path) -> None:
    """The certificate is in the key's place, the key in the certificate's, or a file is no PEM."""
    assert refusal(Pair(server.cert, server.cert)).message == f"{server.cert}: contains no private key in PEM format"
    assert refusal(Pair(server.key, server.key)).message == f"{server.key}: contains no certificate in PEM format"
    text = tmp_path / "text.pem"
    text.write_text("hello")
    assert refusal(server, text).path == str(text)


@pytest.mark.parametrize("torn", ["cert", "key"])
def test_truncated_tls_files_are_reported(server: Pair, tmp_path: Path, torn: str) -> None:
    """Files look like this while they are copied."""
    whole = getattr(server, torn).read_bytes()
    half = tmp_path / "half.pem"
    half.write_bytes(whole[: len(whole) // 2])
    pair = Pair(half, server.key) if torn == "cert" else Pair(server.cert, half)
    assert refusal(pair).path == str(half)


def test_the_key_of_another_certificate_is_refused(server: Pair, other: Pair) -> None:
    assert refusal(Pair(server.cert, other.key)).message == f"{other.key}: is not the private key of {server.cert}"


def test_a_key_with_a_password_is_refused(server: Pair, tmp_path: Path) -> None:
    """OpenSSL must not ask for the password on the terminal."""
    locked = tmp_path / "locked.key"
    command = ["openssl", "ec", "-in", str(server.key), "-aes256", "-passout", "pass:secret", "-out", str(locked)]
    subprocess.run(command, check=True, capture_output=True)
    refused = refusal(Pair(server.cert, locked))
    assert refused.path == str(locked)
    assert "secret" not in refused.message


def test_an_expired_certificate_is_refused(expired: Pair) -> None:
    assert refusal(expired).message == f"{expired.cert}: certificate has expired"


def test_a_client_only_certificate_is_refused_for_a_server(authority: Authority) -> None:
    pair = authority.issue("client-only", uses="clientAuth")
    assert refusal(pair).path == str(pair.cert)
