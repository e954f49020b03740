"""Reloading: what a service's TLS files hold, read again when they change. Connections that stand go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from tidemark.errors import TlsFilesError
from tidemark.tls.server_files import Loaded, ServerFiles

_log = structlog.get_logger()
Tell = Callable[[TlsFilesError | None], None]


class Reloading:
    """files     loaded now; TlsFilesError where they cannot be used
    every_ms  how often `follow` looks at them
    tell      called after each change: with None where new connections get what is new; with the fault where the files
              cannot be used, and what was there before stays in use
    """

    def __init__(self, files: ServerFiles, *, every_ms: int, tell: Tell) -> None:
        self._files = files
        self._every_s = every_ms / 1000
        self._tell = tell
        self._seen = files.stamps()
        self.current: Loaded = files.load()
        self.reload_failed = False

    def look(self) -> None:
        """Read the files if they have changed. For one thread."""
        stamps = self._files.stamps()
        if stamps == self._seen:
            return
        fault: TlsFilesError | None = None
        loaded: Loaded | None = None
        try:
            loaded = self._files.load()
        except TlsFilesError as error:
            fault = error
        if self._files.stamps() != stamps:
            return  # in the middle of a change; the next look finds its end
        self._seen = stamps
        self.current = loaded or self.current
        self.reload_failed = fault is not None
        self._tell(fault)

    async def follow(self) -> None:
        """Look, for ever."""
        while True:
            await asyncio.sleep(self._every_s)
            await asyncio.to_thread(self.look)


def tell_reload(fault: TlsFilesError | None) -> None:
    """A service's `tell`: one event a change of the files."""
    if fault is None:
        _log.info("tls_reloaded")
    else:
        _log.error("tls_reload_failed", reason=fault.message)
