"""Ports for processes that start later, or again: no other process gets one of them meanwhile."""

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
    for _ in _PORTS:
        port = _next_port()
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


def _next_port() -> int:
    """Return each port in turn, so that one that is not listened on yet is not given twice."""
    with _NEXT.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        last = file.read()
        port = int(last) + 1 if last else random.choice(_PORTS)
        if port not in _PORTS:
            port = _PORTS.start
        file.truncate(0)
        file.write(str(port))
    return port
