"""uvicorn around the application: uvloop and httptools, no access log, an address that is told once it is bound."""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import time
from types import FrameType

import structlog
import uvicorn

from tidemark.store.open_files_limit import connections_within
from tidemark.store.originals.format_file import require_known_format
from tidemark.store.paths import StorePaths
from tidemark.store.safety import require_safe_store
from tidemark.tls.reloading import Reloading, tell_reload
from tidemark.tracing.opening import open_tracing

from .app import create_app
from .config import QuerySettings
from .memory_limits import limit_memory
from .state.service_state import Facade
from .web.limited_protocol import ConnectionLimits, LimitedHttpProtocol, limited
from .web.tls_protocol import TlsProtocol

_log = structlog.get_logger()
_GRACE_S = 10


class QueryServer(uvicorn.Server):
    """Stops at once, or once it has drained: every request that waits is woken, and answers with what there is."""

    def __init__(self, settings: QuerySettings) -> None:
        tls = settings.open_tls(settings.query_listen, tell_reload)
        self._tracing = open_tracing(settings, "query")
        app = create_app(settings, tls, settings.open_guard("query"), self._tracing)
        self._facade: Facade = app.state.facade
        self._drain_s = settings.drain_ms / 1000
        self._stop_at = float("inf")
        limits = ConnectionLimits.of(settings, connections_within(settings.max_connections))
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                loop="uvloop",
                http=limited(limits, LimitedHttpProtocol if tls is None else TlsProtocol),
                ws="none",
                access_log=False,
                log_config=None,
                log_level="warning",
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        if tls is not None:
            self.config.load()
            self.config.ssl = _listening_context(tls)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Binds, and tells the real address."""
        await super().startup(sockets)
        if self.started:
            for server in self.servers:
                for bound in server.sockets:
                    host, port = bound.getsockname()[:2]
                    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                    root = str(self._facade.store.paths.root)
                    _log.info("query_started", address=address, tls=self.config.ssl is not None, store_root=root)

    def stop(self) -> None:
        """End soon: requests that wait are answered with what there is."""
        self._facade.watcher.stop()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """The last spans go when the last answer has gone."""
        await super().shutdown(sockets)
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came. (uvicorn's own would raise it again after the stop, and the exit status would not be 0.)"""
        self.force_exit = self.should_exit and sig == signal.SIGINT  # another Ctrl-C
        if self._drain_s and not self._facade.is_draining:
            self._stop_at = time.monotonic() + self._drain_s
        else:
            self.stop()
        self._facade.is_draining = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: is the time to drain over?"""
        if time.monotonic() >= self._stop_at:
            self.stop()
        return await super().on_tick(counter)


def _listening_context(tls: Reloading) -> ssl.SSLContext:
    """For a server that keeps it: each handshake goes on with what *tls* holds by then, certificate and CAs."""

    def go_on_with_current(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = tls.current.context

    listening = tls.current.context
    listening.sni_callback = go_on_with_current
    return listening


def serve(settings: QuerySettings) -> int:
    """Serve until a signal; the exit status. StoreTooNewError, StoreUnsafeError before anything is opened."""
    paths = StorePaths(settings.store_root, settings.log_folders(settings.store_root), settings.state_root)
    require_known_format(paths)
    require_safe_store(paths)
    limit_memory()
    server = QueryServer(settings)
    server.run()
    _log.info("query_stopped")
    return 0 if server.started else 1
