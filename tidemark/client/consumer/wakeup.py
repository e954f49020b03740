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
        self._ear_number = self._ear.fileno()
        self._poll = select.poll()
        self._poll.register(self._ear, select.POLLIN)
        self._watched: list[int] = []  # the descriptors of the last wait

    @property
    def descriptor(self) -> int:
        """The file descriptor that `ring` makes readable."""
        return self._ear_number

    def ring(self) -> None:
        """Wake the waiting thread. Thread-safe."""
        with contextlib.suppress(OSError):  # the buffer is already full, or the bell is closed
            self._hand.send(b"\0")

    def wait(self, descriptors: Iterable[int], timeout_s: float) -> Ready:
        """Wait until a descriptor is readable, `ring`, or *timeout_s* is over."""
        wanted = [*descriptors]
        if wanted != self._watched:
            self._watch(wanted)
        ready = [descriptor for descriptor, _ in self._poll.poll(max(0.0, timeout_s) * 1000)]
        has_rung = self._ear_number in ready
        if has_rung:
            ready.remove(self._ear_number)
            self._ear.recv(4096)
        return Ready(ready, has_rung)

    def _watch(self, wanted: list[int]) -> None:
        for descriptor in set(self._watched).difference(wanted):
            self._poll.unregister(descriptor)
        for descriptor in set(wanted).difference(self._watched):
            self._poll.register(descriptor, select.POLLIN)
        self._watched = wanted

    def close(self) -> None:
        """Close both sockets."""
        self._ear.close()
        self._hand.close()
