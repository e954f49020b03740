"""Bell: ends a `select` of one thread from another."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterable


class Bell:
    """Wait for descriptors, or to be rung."""

    def __init__(self) -> None:
        self._ear, self._hand = socket.socketpair()
        self._ear.setblocking(False)
        self._hand.setblocking(False)

    def ring(self) -> None:
        """Wake the waiting thread. Safe from any thread."""
        with contextlib.suppress(OSError):  # the buffer is full of rings, or the bell is closed
            self._hand.send(b"\0")

    def wait(self, descriptors: Iterable[int], timeout_s: float) -> list[int]:
        """Those of *descriptors* that can be read; [] after *timeout_s*, or when it was rung."""
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(max(0.0, timeout_s) * 1000)]
        if self._ear.fileno() in ready:
            ready.remove(self._ear.fileno())
            self._ear.recv(4096)
        return ready

    def close(self) -> None:
        """Both ends."""
        self._ear.close()
        self._hand.close()
