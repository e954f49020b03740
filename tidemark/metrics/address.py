"""Where a service is told to serve its metrics. Needs no Prometheus."""

from __future__ import annotations

from tidemark.format.host import Host, parse_host


def listen_host(address: str) -> Host | None:
    """Where a setting *address* says to listen; None for "" (nowhere). ValueError when it is no address:port."""
    return parse_host(address.replace("localhost", "127.0.0.1")) if address else None
