"""`python -m services.indexer.query.healthcheck`: exit status 0 when the query service answers. For containers."""

from __future__ import annotations

import http.client
import sys

from tidemark.errors import StoreError
from tidemark.tls.credentials import Credentials

from .config import QuerySettings

_TIMEOUT_S = 4.0


def is_answering(settings: QuerySettings) -> bool:
    """Whether `/healthz` is 200 at the port of *settings*; TlsFilesError for files that cannot be used."""
    connection = _connection(settings)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _connection(settings: QuerySettings) -> http.client.HTTPConnection:
    """With TLS it trusts whoever is there, and shows the service's own certificate where one is asked for."""
    if settings.tls_cert is None:
        return http.client.HTTPConnection("127.0.0.1", settings.port, timeout=_TIMEOUT_S)
    shown = (
        Credentials() if settings.tls_client_ca is None else Credentials(cert=settings.tls_cert, key=settings.tls_key)
    )
    context = shown.context(trusts_all=True)
    return http.client.HTTPSConnection("127.0.0.1", settings.port, timeout=_TIMEOUT_S, context=context)


def main() -> int:
    """0 when it answers."""
    try:
        return 0 if is_answering(QuerySettings()) else 1
    except StoreError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
