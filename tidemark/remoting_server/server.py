"""RemotingServer: listens for RocketMQ's clients and keeps their connections within limits."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping

import structlog

from tidemark.access.guard import Guard
from tidemark.store.open_files_limit import connections_within
from tidemark.tls.reloading import Reloading

from .connection import Connection
from .counts import RequestCounts
from .dispatch import Dispatcher
from .exchange import Handler
from .settings import ConnectionLimits
from .tls_door import TlsDoor

log = structlog.get_logger()

_SCAN_S = 1.0
_QUIET_S = 60.0  # between two log lines about refused connections of one address and reason
_MOST_QUIET = 10_000
_BACKLOG = 1_024
_HANDSHAKE_S = 10.0
_POLL_S = 0.02


class RemotingServer:
    """Serves one address. Lives on one event loop.

    tls: None for plaintext. on_lost: called with each connection that ends before the server stops.
    """

    def __init__(
        self,
        limits: ConnectionLimits,
        guard: Guard,
        tls: Reloading | None,
        on_lost: Callable[[Connection], None] = lambda _: None,
    ) -> None:
        self.limits = limits._replace(connections=connections_within(limits.connections))
        self.counts = RequestCounts()
        self.loop: asyncio.AbstractEventLoop
        self.port = 0
        self._tls = tls
        self._on_lost = on_lost
        self._dispatcher = Dispatcher(guard)
        self.handle = self._dispatcher.handle
        self._connections: set[Connection] = set()
        self._handshakes: set[TlsDoor] = set()
        self._server: asyncio.Server
        self._scanning: asyncio.Task[None] | None = None
        self._incomplete_bytes = 0
        self._logged: dict[tuple[str, str], float] = {}

    @property
    def is_stopping(self) -> bool:
        """True from `refuse_new` or the start of `stop` on."""
        return self._dispatcher.is_stopping

    @property
    def connections(self) -> int:
        """Number of connections. Safe from any thread."""
        return len(self._connections)

    async def bind(self, listen: str) -> None:
        """Bind address:port, and set `port`. Raises OSError."""
        self.loop = asyncio.get_running_loop()
        host, _, port = listen.rpartition(":")
        self._server = await self.loop.create_server(
            self._protocol_factory(), host.strip("[]"), int(port), backlog=_BACKLOG, start_serving=False
        )
        self.port = self._server.sockets[0].getsockname()[1]

    def _protocol_factory(self) -> Callable[[], asyncio.Protocol]:
        if self._tls is None:
            return lambda: Connection(self)
        context = _listening_context(self._tls)
        return lambda: TlsDoor(self, context, _HANDSHAKE_S)

    async def start(self, handlers: Mapping[int, Handler]) -> None:
        """Accept connections. *handlers*: by request code."""
        self._dispatcher.handlers = handlers
        await self._server.start_serving()
        self._scanning = asyncio.create_task(self._scan())
        log.info("remoting_started", port=self.port, tls=self._tls is not None)

    def add(self, connection: Connection) -> bool:
        """Add a connection; return False if there are too many, or the server stops."""
        if self._is_full():
            return False
        self._connections.add(connection)
        return True

    def add_handshake(self, door: TlsDoor) -> bool:
        """Add a connection whose TLS handshake begins; return False as `add` does."""
        if self._is_full():
            return False
        self._handshakes.add(door)
        return True

    def remove_handshake(self, door: TlsDoor) -> None:
        """Forget a connection whose handshake has ended."""
        self._handshakes.discard(door)

    def _is_full(self) -> bool:
        return self.is_stopping or len(self._connections) + len(self._handshakes) >= self.limits.connections

    def too_many(self, address: str) -> None:
        """Report a connection that `add` has refused; one that comes at a stop is not reported."""
        if not self.is_stopping:
            self.refused(address, "TOO_MANY_CONNECTIONS", limit=self.limits.connections)

    def remove(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        if connection in self._connections:
            self._connections.discard(connection)
            if not self.is_stopping:  # the clients connect again to the next process
                self._on_lost(connection)

    def refused(self, address: str, reason: str, **facts: object) -> None:
        """Count a connection that is closed without an answer, and log it: once a minute by address and reason."""
        self.counts.refuse(reason)
        now = time.monotonic()
        if now - self._logged.get((address, reason), float("-inf")) < _QUIET_S:
            return
        if len(self._logged) >= _MOST_QUIET:
            self._logged.clear()
        self._logged[address, reason] = now
        log.warning("remoting_connection_refused", address=address, reason=reason, **facts)

    def buffer_changed(self, change: int) -> None:
        """Note *change* bytes of incomplete frames; above the limit, cut the connection with the most of them."""
        self._incomplete_bytes += change
        while self._incomplete_bytes > self.limits.incomplete_bytes:
            largest = max(self._connections, key=lambda connection: connection.incomplete_bytes)
            assert largest.incomplete_bytes, "the sum is of these connections"
            self.refused(largest.address, "INCOMPLETE_FRAMES_EXCEEDED", bytes=largest.incomplete_bytes)
            largest.abort()

    async def _scan(self) -> None:
        """Cut connections that are silent, send half of a frame, or do not take their answers."""
        while True:
            await asyncio.sleep(_SCAN_S)
            now = self.loop.time()
            for connection in list(self._connections):
                reason = connection.overdue(now)
                if reason is not None:
                    self.refused(connection.address, reason)
                    connection.abort()

    def refuse_new(self) -> None:
        """Answer new requests with GO_AWAY, because the service stops. Safe in a signal handler."""
        self._dispatcher.is_stopping = True

    async def stop(self, grace_s: float) -> None:
        """Refuse new requests, let those in work end for at most *grace_s*, and close all connections."""
        self.refuse_new()
        self._server.close()
        deadline = self.loop.time() + grace_s
        while not all(connection.is_idle for connection in self._connections):
            if self.loop.time() >= deadline:
                break
            await asyncio.sleep(_POLL_S)
        if self._scanning is not None:
            self._scanning.cancel()
        for door in list(self._handshakes):
            door.abort()
        for connection in list(self._connections):
            connection.close()


def _listening_context(tls: Reloading) -> ssl.SSLContext:
    """Return a context for the server's lifetime. Each handshake uses the current certificate and CAs of *tls*."""

    def use_current_certificate(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = tls.current.context

    listening = tls.current.context
    listening.sni_callback = use_current_certificate
    return listening
