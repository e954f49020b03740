"""The HTTP listener of services that serve nothing else over HTTP. It ends with the process."""

from __future__ import annotations

from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

from tidemark.errors import StoreContradictionError

from .address import listen_host


def listen(address: str, registry: CollectorRegistry, *, setting: str) -> WSGIServer | None:
    """Serve *registry* at *address*, in threads of its own; None when it says nowhere.

    raises StoreContradictionError (facts: setting, address) when it cannot be bound
    """
    host = listen_host(address)
    if host is None:
        return None
    try:
        server, _ = start_http_server(host.port, host.address, registry)
    except OSError as error:
        raise StoreContradictionError(
            f"{address}, for metrics ({setting}), cannot be used: {error.strerror}", setting=setting, address=address
        ) from error
    return server
