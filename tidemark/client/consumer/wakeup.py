"""Bell: ends one thread's `select` from another thread."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterable
from typing import NamedTuple


class Ready(NamedTuple):
    """The end of a wait. descriptors: the readable ones; has_rung: `ring` was called."""

    descriptors: list[int]
    has_rung: bool


class Bell:
    """A wait for file descriptors that `ring` ends early."""

    def __init__(self) -> None:
        self._ear, self._hand = socket.socketpair()
        self._ear.setblocking(False)
        self._hand.setblocking(False)

    def ring(self) -> None:
        """Wake the waiting thread. Thread-safe."""
        with contextlib.suppress(OSError):  # the buffer is already full, or the bell is closed
            self._hand.send(b"\0")

    def wait(self, descriptors: Iterable[int], timeout_s: float) -> Ready:
        """Wait until a descriptor is readable, `ring`, or *timeout_s* is over."""
        poll = select.poll()
        poll.register(self._ear, select.POLLIN)
        for descriptor in descriptors:
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(max(0.0, timeout_s) * 1000)]
        has_rung = self._ear.fileno() in ready
        if has_rung:
            ready.remove(self._ear.fileno())
            self._ear.recv(4096)
        return Ready(ready, has_rung)

    def close(self) -> None:
        """Close both sockets."""
        self._ear.close()
        self._hand.close()
