"""Ports of this machine that nobody listens on, below those that the kernel gives to outgoing connections."""

from __future__ import annotations

import random
import socket

_FIRST_PORT, _LAST_PORT = 10_000, 32_000


def free_run(count: int) -> int:
    """The first of *count* ports in a row."""
    chooser = random.SystemRandom()
    while True:
        first = chooser.randrange(_FIRST_PORT, _LAST_PORT)
        if all(_is_free(port) for port in range(first, first + count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
