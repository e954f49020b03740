"""TlsDoor: a TCP connection until the end of its TLS handshake. It counts as a connection, and so is limited."""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

from .connection import Connection, Owner, abort, peer_of


class DoorOwner(Owner, Protocol):
    """The server of a connection, as its handshake uses it."""

    def add_handshake(self, door: TlsDoor) -> bool:
        """Add a connection whose handshake begins; return False if it must close."""

    def remove_handshake(self, door: TlsDoor) -> None:
        """Forget a connection whose handshake has ended."""


class TlsDoor(asyncio.Protocol):
    """The protocol of a connection before and during its handshake; `Connection` replaces it."""

    def __init__(self, owner: DoorOwner, context: ssl.SSLContext, handshake_s: float) -> None:
        self._owner = owner
        self._context = context
        self._handshake_s = handshake_s
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._early = bytearray()  # decrypted before `Connection` is there
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the handshake, unless the server has too many connections."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address = peer_of(transport)[0]
        if not self._owner.add_handshake(self):
            self._owner.too_many(self._address)
            abort(transport)
            return
        self._task = self._owner.loop.create_task(self._shake_hands())

    def data_received(self, data: bytes) -> None:
        """Keep the first bytes for `Connection`."""
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        """End the handshake."""
        self._is_lost = True
        self._owner.remove_handshake(self)

    async def _shake_hands(self) -> None:
        try:
            secured = await self._owner.loop.start_tls(
                self._transport, self, self._context, server_side=True, ssl_handshake_timeout=self._handshake_s
            )
        except (ssl.SSLError, ConnectionAbortedError) as error:  # no TLS, or too slow
            self._owner.refused(self._address, "TLS_HANDSHAKE_FAILED", message=str(error))
            abort(self._transport)
            return
        except OSError:  # the client has closed: a check of the port
            abort(self._transport)
            return
        finally:
            self._owner.remove_handshake(self)
        if secured is None or self._is_lost:
            return
        connection = Connection(self._owner)
        secured.set_protocol(connection)
        connection.connection_made(secured)
        if self._early and not secured.is_closing():
            connection.data_received(bytes(self._early))

    def abort(self) -> None:
        """Close at once."""
        if self._task is not None:
            self._task.cancel()
        abort(self._transport)
