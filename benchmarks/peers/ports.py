"""Finds free ports below the range that the kernel uses for outgoing connections."""

from __future__ import annotations

import random
import socket

_FIRST_PORT, _LAST_PORT = 10_000, 32_000


def free_run(count: int) -> int:
    """Return the first of *count* consecutive free ports."""
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
