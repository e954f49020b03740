"""Reloading: a service's TLS files, read again when they change. Existing connections are kept."""

from __future__ import annotations

import ssl

import structlog

from tidemark.errors import StoreError
from tidemark.settings.reloaded_files import OnReload, ReloadedFiles
from tidemark.tls.server_files import LoadedCertificates

__all__ = ["OnReload", "Reloading", "listening_context", "log_reload"]

_log = structlog.get_logger()
Reloading = ReloadedFiles[LoadedCertificates]


def listening_context(tls: Reloading) -> ssl.SSLContext:
    """Return a context for the server's lifetime. Each handshake uses the current certificate and CAs of *tls*."""

    def use_current_certificate(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = tls.current.context

    listening = tls.current.context
    listening.sni_callback = use_current_certificate
    return listening


def log_reload(fault: StoreError | None) -> None:
    """Log one event per change of the files; callback of `Reloading`."""
    if fault is None:
        _log.info("tls_reloaded")
    else:
        _log.error("tls_reload_failed", reason=fault.message)
