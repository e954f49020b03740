"""Runs the application in uvicorn: uvloop and httptools, no access log, and the bound address as a log event."""

from __future__ import annotations

import asyncio
import signal
import socket
import time
from types import FrameType

import structlog
import uvicorn

from tidemark.store.open_files_limit import connections_within
from tidemark.store.originals.format_file import require_known_format
from tidemark.store.paths import StorePaths
from tidemark.store.safety import require_safe_store
from tidemark.tls.reloading import listening_context, log_reload
from tidemark.tracing.opening import open_tracing

from .app import bind_remoting, create_app
from .config import QuerySettings
from .memory_limits import limit_memory
from .state.service_state import ServiceState
from .web.busy_polling import BusyPolling
from .web.limited_protocol import ConnectionLimits, LimitedHttpProtocol, limited
from .web.tls_protocol import TlsProtocol

_log = structlog.get_logger()
_GRACE_S = 10


class QueryServer(uvicorn.Server):
    """A uvicorn server that stops at once or after `drain_ms`; each waiting request answers with the data available."""

    def __init__(self, settings: QuerySettings) -> None:
        tls = settings.open_tls((settings.query_listen, settings.query_remoting_listen), log_reload)
        self._tracing = open_tracing(settings, "query")
        app = self._app = create_app(settings, tls, settings.open_guard("query"), self._tracing)
        self._state: ServiceState = app.state.service
        self._drain_s = settings.drain_ms / 1000
        self._stop_at = float("inf")
        limits = ConnectionLimits.of(settings, connections_within(settings.max_connections))
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                loop="uvloop",
                http=limited(
                    limits,
                    LimitedHttpProtocol if tls is None else TlsProtocol,
                    BusyPolling(settings.query_busy_poll_us),
                ),
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
            self.config.ssl = listening_context(tls)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Bind, and log the bound address. Raises OSError if the address for RocketMQ's clients cannot be bound."""
        await bind_remoting(self._app)  # within the lifespan, a failure would be logged with a traceback
        await super().startup(sockets)
        if self.started:
            for server in self.servers:
                for bound in server.sockets:
                    host, port = bound.getsockname()[:2]
                    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                    root = str(self._state.store.paths.root)
                    _log.info("query_started", address=address, tls=self.config.ssl is not None, store_root=root)

    def stop(self) -> None:
        """Stop the server; waiting requests are answered with the data available."""
        if self._state.remoting is not None:
            self._state.remoting.refuse_new()  # first, because clients whose wait ends ask again at once
        self._state.watcher.stop()
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down, and export the last spans after the last answer."""
        await super().shutdown(sockets)
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a stop signal. (uvicorn's handler raises it again after the stop; then the exit status is not 0.)"""
        self.force_exit = self.should_exit and sig == signal.SIGINT  # a second Ctrl-C
        if self._drain_s and not self._state.is_draining:
            self._stop_at = time.monotonic() + self._drain_s
        else:
            self.stop()
        self._state.is_draining = True

    async def on_tick(self, counter: int) -> bool:
        """Stop when the time to drain is over. uvicorn calls this ten times a second."""
        if time.monotonic() >= self._stop_at:
            self.stop()
        return await super().on_tick(counter)


def serve(settings: QuerySettings) -> int:
    """Serve until a signal, and return the exit status.

    Raises:
        StoreTooNewError, StoreUnsafeError: the store was refused before any file was opened.
    """
    paths = StorePaths(settings.store_root, settings.log_folders(settings.store_root), settings.state_root)
    require_known_format(paths)
    require_safe_store(paths)
    limit_memory()
    server = QueryServer(settings)
    server.run()
    _log.info("query_stopped")
    return 0 if server.started else 1
