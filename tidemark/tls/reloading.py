"""Reloading: what a service's TLS files hold, read again when they change. Connections that stand go on."""

from __future__ import annotations

import structlog

from tidemark.errors import StoreError
from tidemark.settings.reloaded_files import ReloadedFiles, Tell
from tidemark.tls.server_files import Loaded

__all__ = ["Reloading", "Tell", "tell_reload"]

_log = structlog.get_logger()
Reloading = ReloadedFiles[Loaded]


def tell_reload(fault: StoreError | None) -> None:
    """A service's `tell`: one event a change of the files."""
    if fault is None:
        _log.info("tls_reloaded")
    else:
        _log.error("tls_reload_failed", reason=fault.message)
