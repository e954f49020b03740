"""TLS of the writer: gRPC asks for the certificate of each new connection."""

from __future__ import annotations

import grpc

from tidemark.tls.reloading import Reloading
from tidemark.tls.server_files import Loaded


def server_credentials(tls: Reloading) -> grpc.ServerCredentials:
    """What *tls* holds, at every moment."""
    return grpc.dynamic_ssl_server_credentials(
        _configuration(tls.current),
        _Fetcher(tls),  # type: ignore[arg-type]  # None is no change; the stubs do not know
        require_client_authentication=tls.current.client_ca is not None,
    )


class _Fetcher:
    """Gives gRPC what is new since it asked last; None where nothing is. Runs in gRPC's threads."""

    def __init__(self, tls: Reloading) -> None:
        self._tls = tls
        self._given = tls.current

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        current = self._tls.current
        if current is self._given:
            return None
        self._given = current
        return _configuration(current)


def _configuration(loaded: Loaded) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(loaded.key, loaded.cert)], loaded.client_ca)
