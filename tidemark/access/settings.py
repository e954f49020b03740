"""AccessSettings: access settings that the writer and the query service share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import structlog
from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings

from tidemark.errors import AccessFileError, StoreError

if TYPE_CHECKING:
    from tidemark.access.guard import Guard

OptionalPath = Annotated[Path | None, BeforeValidator(lambda given: given or None)]  # compose files set ""
_log = structlog.get_logger()


class AccessSettings(BaseSettings):
    """Settings of docs/security.md."""

    access_file: OptionalPath = Field(
        None, description="TOML file of principals and rules; unset: every client may do everything"
    )
    access_reload_ms: int = Field(
        10_000,
        ge=10,
        le=86_400_000,
        description="interval between checks of the access and JWKS files",
    )
    audit_file: OptionalPath = Field(None, description="audit log, with an access file; unset: standard error")
    audit_repeat_ms: int = Field(
        60_000,
        ge=100,
        le=86_400_000,
        description="entries repeated within this interval are only counted",
    )
    max_requests_per_s: int = Field(
        0,
        ge=0,
        description="limit per principal, or address without an access file; 0: none",
    )

    def open_guard(self, service: str, *, append_bytes_per_s: int = 0, greatest_append_bytes: int = 0) -> Guard | None:
        """Return the guard of *service*; None if there is neither an access file nor a limit.

        Raises AccessFileError, also if the audit log cannot be written.
        """
        if self.access_file is None and not (self.max_requests_per_s or append_bytes_per_s):
            return None
        from tidemark.access.access_file import AccessFile  # imported here because it takes 100 ms
        from tidemark.access.audit import Audit, audit_handler
        from tidemark.access.guard import Guard
        from tidemark.access.rate_limits import RateLimits
        from tidemark.settings.reloaded_files import ReloadedFiles

        rates = RateLimits(
            requests_per_s=self.max_requests_per_s,
            append_bytes_per_s=append_bytes_per_s,
            greatest_append_bytes=greatest_append_bytes,
        )
        if self.access_file is None:
            return Guard(None, rates, None)
        access = ReloadedFiles(
            AccessFile(self.access_file), every_ms=self.access_reload_ms, on_reload=log_access_reload
        )
        try:
            handler = audit_handler(self.audit_file)
        except OSError as error:
            raise AccessFileError(f"{self.audit_file}: {error.strerror}", path=str(self.audit_file)) from None
        return Guard(access, rates, Audit(handler, service=service, repeat_ms=self.audit_repeat_ms))


def log_access_reload(fault: StoreError | None) -> None:
    """Log one event per change of the files."""
    if fault is None:
        _log.info("access_reloaded")
    else:
        _log.error("access_reload_failed", reason=fault.message)
