"""Reloading: a service's TLS files, read again when they change. Existing connections are kept."""

from __future__ import annotations

import structlog

from tidemark.errors import StoreError
from tidemark.settings.reloaded_files import OnReload, ReloadedFiles
from tidemark.tls.server_files import LoadedCertificates

__all__ = ["OnReload", "Reloading", "log_reload"]

_log = structlog.get_logger()
Reloading = ReloadedFiles[LoadedCertificates]


def log_reload(fault: StoreError | None) -> None:
    """Log one event per change of the files; callback of `Reloading`."""
    if fault is None:
        _log.info("tls_reloaded")
    else:
        _log.error("tls_reload_failed", reason=fault.message)
