"""Ports for services that start later, or again: no other process gets one of them meanwhile.

A port of the range for outgoing connections can be taken by any process between its choice and the service's start.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

_PORTS = range(20_000, 32_000)  # below the range from which Linux takes ports for outgoing connections
_NEXT = Path(tempfile.gettempdir()) / f"tidemark-tests-next-port-{os.getuid()}"  # shared by all processes with tests


def fixed_port() -> int:
    """Return a port of the loopback address that nothing listens on, and that no test process got lately."""
    return fixed_ports(1)[0]


def fixed_ports(count: int) -> range:
    """Return *count* consecutive ports like those of `fixed_port`."""
    for _ in _PORTS:
        ports = _next_ports(count)
        if all(map(_is_free, ports)):
            return ports
    raise AssertionError(f"no {count} consecutive ports are free")


def _next_ports(count: int) -> range:
    """Return the ports in turn, so that those that are not listened on yet are not given twice."""
    with _NEXT.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        last = file.read()
        first = int(last) + 1 if last else random.choice(_PORTS)
        if first not in _PORTS or first + count - 1 not in _PORTS:
            first = _PORTS.start
        file.truncate(0)
        file.write(str(first + count - 1))
    return range(first, first + count)


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
