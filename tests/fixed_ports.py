"""Ports for processes that start later, or again: no outgoing connection gets one of them meanwhile."""

from __future__ import annotations

import random
import socket

_PORTS = range(20_000, 32_000)  # below the range from which Linux takes ports for outgoing connections


def fixed_port() -> int:
    """Return a port of the loopback address that nothing listens on."""
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
