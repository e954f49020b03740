"""HTTP listener of services that have no other HTTP server. It runs until the process ends."""

from __future__ import annotations

from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

from tidemark.errors import StoreContradictionError

from .address import listen_host


def listen(address: str, registry: CollectorRegistry, *, setting: str) -> WSGIServer | None:
    """Serve *registry* at *address* in separate threads; return None if the address is empty.

    Raises StoreContradictionError (facts: setting, address) if the address cannot be bound.
    """
    host = listen_host(address)
    if host is None:
        return None
    try:
        server, _ = start_http_server(host.port, host.address, registry)
    except OSError as error:
        raise StoreContradictionError(
            f"cannot listen on {address} for metrics ({setting}): {error.strerror}", setting=setting, address=address
        ) from error
    return server
