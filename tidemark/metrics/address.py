"""Address of a service's metrics listener. Does not import Prometheus."""

from __future__ import annotations

from tidemark.format.host import Host, parse_host


def listen_host(address: str) -> Host | None:
    """Parse the setting *address*; None for "" (no listener). Raises ValueError if it is not address:port."""
    return parse_host(address.replace("localhost", "127.0.0.1")) if address else None
