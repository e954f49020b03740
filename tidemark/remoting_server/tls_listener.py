"""TlsListener: accepts TCP connections and shakes hands with their clients. A handshake counts as a connection.

A server of the event loop would not report handshakes that fail, and would not limit those that do not end.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Protocol

from .connection import LINGER_NOT, Connection, Owner, ip_address_of

_BACKLOG = 1_024
_PAUSE_S = 0.1  # after a failed accept: the process has no more open files


class DoorOwner(Owner, Protocol):
    """The server of a listener."""

    def is_full(self) -> bool:
        """Return True if no further connection may be accepted."""


class TlsListener:
    """Listens on address:port. Lives on the event loop of its server. handshakes: those that have not ended."""

    def __init__(self, owner: DoorOwner, context: ssl.SSLContext, handshake_s: float) -> None:
        self.handshakes: set[asyncio.Task[None]] = set()
        self._owner = owner
        self._context = context
        self._handshake_s = handshake_s
        self._socket: socket.socket
        self._accepting: asyncio.Task[None] | None = None

    def bind(self, host: str, port: int) -> int:
        """Bind the address and return the port. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        self._socket.setblocking(False)
        bound: int = self._socket.getsockname()[1]
        return bound

    def start(self) -> None:
        """Accept connections."""
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """Accept no more connections; handshakes continue."""
        if self._accepting is not None:
            self._accepting.cancel()
        self._socket.close()

    def abort(self) -> None:
        """End all handshakes."""
        for task in list(self.handshakes):
            task.cancel()

    async def _accept(self) -> None:
        while True:
            try:
                accepted, peer = await self._owner.loop.sock_accept(self._socket)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            address = ip_address_of(peer)
            if self._owner.is_full():
                self._owner.too_many(address)
                _abort(accepted)
                continue
            task = self._owner.loop.create_task(self._shake_hands(accepted, address))
            self.handshakes.add(task)
            task.add_done_callback(self.handshakes.discard)

    async def _shake_hands(self, accepted: socket.socket, address: str) -> None:
        try:
            await self._owner.loop.connect_accepted_socket(
                lambda: Connection(self._owner),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_s,
            )
        except (ssl.SSLError, ConnectionAbortedError) as error:  # no TLS, or too slow
            self._owner.refused(address, "TLS_HANDSHAKE_FAILED", message=str(error))
        except OSError:  # the client has closed: a check of the port
            pass


def _abort(accepted: socket.socket) -> None:
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NOT)
    accepted.close()
