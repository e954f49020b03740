"""TLS settings of the services."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from services.indexer.query.config import QuerySettings
from services.writer.config import WriterSettings
from tests.certificates import Authority, Pair
from tidemark.errors import PlaintextRefusedError, TlsFilesError
from tidemark.status import status_of
from tidemark.tls.reloading import Reloading
from tidemark.tls.settings import TlsSettings


def opened(listen: str = "127.0.0.1:0", **settings: Any) -> Reloading | None:
    return TlsSettings(**settings).open_tls((listen,), lambda _: None)


@pytest.mark.parametrize("listen", ["0.0.0.0:1", "[::]:1", ":1", "192.168.7.65:1", "db.example:1"])
def test_plaintext_is_refused_on_reachable_addresses(listen: str) -> None:
    """An explicit setting allows it."""
    with pytest.raises(PlaintextRefusedError, match="TIDEMARK_ALLOW_PLAINTEXT") as refused:
        opened(listen)
    assert refused.value.address == listen
    assert status_of(refused.value).reason == "PLAINTEXT_REFUSED"
    assert opened(listen, allow_plaintext=True) is None


@pytest.mark.parametrize("listen", ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"])
def test_plaintext_is_allowed_on_loopback(listen: str) -> None:
    assert opened(listen) is None


def test_any_address_is_allowed_with_a_certificate(server: Pair) -> None:
    assert opened("0.0.0.0:1", **server.settings) is not None


def test_a_certificate_setting_without_its_counterpart_is_refused(authority: Authority, server: Pair) -> None:
    """The error names the settings."""
    for given, missing in (("cert", "KEY"), ("key", "CERT"), ("client_ca", "CERT")):
        files = {"cert": server.cert, "key": server.key, "client_ca": authority.ca}
        half: dict[str, Any] = {f"tls_{given}": files[given]}
        with pytest.raises(TlsFilesError, match=f"TIDEMARK_TLS_{given.upper()} is set to .*TIDEMARK_TLS_{missing} is"):
            opened(**half)


def test_required_client_certificates_need_a_client_ca(server: Pair) -> None:
    with pytest.raises(TlsFilesError, match="TIDEMARK_TLS_CLIENT_CA is not set"):
        opened(**server.settings, tls_client_auth="required")


def test_a_client_ca_requires_client_certificates_by_default(authority: Authority, server: Pair) -> None:
    """They can be switched off."""
    asking = opened(**server.settings, tls_client_ca=authority.ca)
    assert asking is not None
    assert asking.current.client_ca == authority.ca.read_bytes()
    silent = opened(**server.settings, tls_client_ca=authority.ca, tls_client_auth="none")
    assert silent is not None
    assert silent.current.client_ca is None


def test_an_empty_tls_file_name_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose files and systemd units set empty values."""
    monkeypatch.setenv("TIDEMARK_TLS_CERT", "")
    assert TlsSettings().tls_cert is None


def test_both_services_read_the_tls_settings(monkeypatch: pytest.MonkeyPatch, server: Pair) -> None:
    """The environment variable has one name for both."""
    monkeypatch.setenv("TIDEMARK_TLS_CERT", str(server.cert))
    monkeypatch.setenv("TIDEMARK_TLS_RELOAD_MS", "500")
    for settings in (WriterSettings(), QuerySettings()):
        assert (settings.tls_cert, settings.tls_reload_ms) == (server.cert, 500)


def test_the_writer_refuses_optional_client_certificates() -> None:
    """gRPC's Python server requires a certificate from all clients or from none."""
    with pytest.raises(ValidationError, match="is not supported by the writer"):
        WriterSettings(tls_client_auth="optional")
    assert QuerySettings(tls_client_auth="optional").tls_client_auth == "optional"
