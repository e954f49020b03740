"""TLS of the writer: gRPC fetches the current certificate for each new connection."""

from __future__ import annotations

import grpc

from tidemark.tls.reloading import Reloading
from tidemark.tls.server_files import LoadedCertificates


def server_credentials(tls: Reloading) -> grpc.ServerCredentials:
    """Return credentials that always use the current files of *tls*."""
    return grpc.dynamic_ssl_server_credentials(
        _configuration(tls.current),
        _Fetcher(tls),  # type: ignore[arg-type]  # the stubs lack None, which means unchanged
        require_client_authentication=tls.current.client_ca is not None,
    )


class _Fetcher:
    """A callback that returns the configuration if it changed since the last call, otherwise None.

    It runs in gRPC's threads.
    """

    def __init__(self, tls: Reloading) -> None:
        self._tls = tls
        self._given = tls.current

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        current = self._tls.current
        if current is self._given:
            return None
        self._given = current
        return _configuration(current)


def _configuration(loaded: LoadedCertificates) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(loaded.key, loaded.cert)], loaded.client_ca)
