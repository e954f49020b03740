"""TlsSettings: TLS settings that the writer and the query service share."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings

from tidemark.errors import PlaintextRefusedError, TlsFilesError
from tidemark.tls.reloading import OnReload, Reloading
from tidemark.tls.server_files import ClientAuth, ServerFiles

PemFile = Annotated[Path | None, BeforeValidator(lambda given: given or None)]  # compose files set ""


class TlsSettings(BaseSettings):
    """Settings of docs/security.md. Files are in PEM format."""

    tls_cert: PemFile = Field(None, description="certificate chain, PEM; unset: no TLS")
    tls_key: PemFile = Field(None, description="private key of tls_cert, PEM, without a password")
    tls_client_ca: PemFile = Field(None, description="CAs of client certificates, PEM; unset: any client may connect")
    tls_client_auth: ClientAuth | None = Field(
        None,
        description="none, optional (query only) or required; unset: required with tls_client_ca, otherwise none",
    )
    tls_reload_ms: int = Field(10_000, ge=10, le=86_400_000, description="interval between checks of the TLS files")
    allow_plaintext: bool = Field(False, description="allow plaintext on an address beyond loopback")

    def open_tls(self, listens: Iterable[str], on_reload: OnReload) -> Reloading | None:
        """Return the TLS files of a service that listens on *listens* (address:port, or empty); None without TLS.

        Raises TlsFilesError, or PlaintextRefusedError if plaintext is not allowed on one of these addresses.
        """
        if self.tls_cert is None or self.tls_key is None:
            self._require_no_half()
            listen = next((listen for listen in listens if listen and not is_loopback(listen)), None)
            if listen is not None and not self.allow_plaintext:
                raise PlaintextRefusedError(
                    f"{listen} is reachable from other machines and TLS is not configured: set TIDEMARK_TLS_CERT and "
                    "TIDEMARK_TLS_KEY, or TIDEMARK_ALLOW_PLAINTEXT=true",
                    address=listen,
                )
            return None
        default = ClientAuth.NONE if self.tls_client_ca is None else ClientAuth.REQUIRED
        client_auth = self.tls_client_auth or default
        if client_auth is not ClientAuth.NONE and self.tls_client_ca is None:
            raise TlsFilesError(f"TIDEMARK_TLS_CLIENT_AUTH is {client_auth}, but TIDEMARK_TLS_CLIENT_CA is not set")
        files = ServerFiles(self.tls_cert, self.tls_key, self.tls_client_ca, client_auth)
        return Reloading(files, every_ms=self.tls_reload_ms, on_reload=on_reload)

    def _require_no_half(self) -> None:
        for name, needed in (("cert", "key"), ("key", "cert"), ("client_ca", "cert"), ("client_auth", "cert")):
            given, missing = getattr(self, f"tls_{name}"), getattr(self, f"tls_{needed}")
            if given not in (None, ClientAuth.NONE) and missing is None:
                raise TlsFilesError(
                    f"TIDEMARK_TLS_{name.upper()} is set to {given}, but TIDEMARK_TLS_{needed.upper()} is not set"
                )


def is_loopback(listen: str) -> bool:
    """Return True if only this machine can connect to *listen*, address:port."""
    host = listen.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
