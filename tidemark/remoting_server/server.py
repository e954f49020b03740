"""RemotingServer: listens for RocketMQ's clients and keeps their connections within limits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

import structlog

from tidemark.access.guard import Guard
from tidemark.store.open_files_limit import connections_within
from tidemark.tls.reloading import Reloading, listening_context

from .connection import Connection
from .counts import RequestCounts
from .dispatch import Dispatcher
from .exchange import Handler
from .settings import ConnectionLimits
from .tls_listener import TlsListener

log = structlog.get_logger()

_SCAN_S = 1.0
_QUIET_S = 60.0  # between two log lines about refused connections of one address and reason
_MOST_QUIET = 10_000
_BACKLOG = 1_024
_HANDSHAKE_S = 10.0
_POLL_S = 0.02
_RECEIVE_BYTES = 256 << 10  # by one call of the kernel


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
        self.shared_memory = memoryview(bytearray(_RECEIVE_BYTES))
        self.loop: asyncio.AbstractEventLoop
        self.port = 0
        self._tls = tls
        self._on_lost = on_lost
        self._dispatcher = Dispatcher(guard)
        self.handle = self._dispatcher.handle
        self._connections: set[Connection] = set()
        self._listener = None if tls is None else TlsListener(self, listening_context(tls), _HANDSHAKE_S)
        self._servers: list[asyncio.Server] = []  # of plaintext
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
        host = host.strip("[]")
        if self._listener is not None:
            self.port = self._listener.bind(host, int(port))
            return
        self.port = await self._bind_plaintext(host, int(port))

    async def bind_also(self, listen: str) -> None:
        """Bind a further address:port, without TLS. Raises OSError."""
        host, _, port = listen.rpartition(":")
        await self._bind_plaintext(host.strip("[]"), int(port))

    async def _bind_plaintext(self, host: str, port: int) -> int:
        server = await self.loop.create_server(
            lambda: Connection(self), host, port, backlog=_BACKLOG, start_serving=False
        )
        self._servers.append(server)
        bound: int = server.sockets[0].getsockname()[1]
        return bound

    async def start(self, handlers: Mapping[int, Handler]) -> None:
        """Accept connections. *handlers*: by request code."""
        self._dispatcher.handlers = handlers
        if self._listener is not None:
            self._listener.start()
        for server in self._servers:
            await server.start_serving()
        self._scanning = asyncio.create_task(self._scan())
        log.info("remoting_started", port=self.port, tls=self._tls is not None)

    def add(self, connection: Connection) -> bool:
        """Add a connection; return False if there are too many, or the server stops."""
        own = 0 if self._listener is None else 1  # its handshake, which has not ended yet
        if self.is_stopping or self._held() - own >= self.limits.connections:
            return False
        self._connections.add(connection)
        return True

    def is_full(self) -> bool:
        """Return True if no further connection may be accepted."""
        return self.is_stopping or self._held() >= self.limits.connections

    def _held(self) -> int:
        handshakes = 0 if self._listener is None else len(self._listener.handshakes)
        return len(self._connections) + handshakes

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
        if self._listener is not None:
            self._listener.close()
        for server in self._servers:
            server.close()
        deadline = self.loop.time() + grace_s
        while not all(connection.is_idle for connection in self._connections):
            if self.loop.time() >= deadline:
                break
            await asyncio.sleep(_POLL_S)
        if self._scanning is not None:
            self._scanning.cancel()
        if self._listener is not None:
            self._listener.abort()
        for connection in list(self._connections):
            connection.close()
