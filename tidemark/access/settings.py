"""AccessSettings: what writer and query service are told about access, the same for both."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import structlog
from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings

from tidemark.errors import AccessFileError, StoreError

if TYPE_CHECKING:
    from tidemark.access.guard import Guard

OptionalPath = Annotated[Path | None, BeforeValidator(lambda given: given or None)]  # "", as compose files give it
_log = structlog.get_logger()


class AccessSettings(BaseSettings):
    """docs/security.md."""

    access_file: OptionalPath = Field(
        None, description="who may do what, TOML; unset: whoever may connect may do everything"
    )
    access_reload_ms: int = Field(
        10_000, ge=10, le=86_400_000, description="how often that file and its key set are looked at"
    )
    audit_file: OptionalPath = Field(
        None, description="where the audit log goes, where there is an access file; unset: with all other events"
    )
    audit_repeat_ms: int = Field(
        60_000, ge=100, le=86_400_000, description="the same deed again within this is counted, not told again"
    )
    max_requests_per_s: int = Field(
        0, ge=0, description="of one principal, or of one address where there is no access file; 0: no limit"
    )

    def open_guard(self, service: str, *, append_bytes_per_s: int = 0, greatest_append_bytes: int = 0) -> Guard | None:
        """What stands before the requests of *service*; None where there is neither an access file nor a limit.

        raises AccessFileError, also for an audit log that cannot be written
        """
        if self.access_file is None and not (self.max_requests_per_s or append_bytes_per_s):
            return None
        from tidemark.access.access_file import AccessFile  # a tenth of a second of libraries
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
        access = ReloadedFiles(AccessFile(self.access_file), every_ms=self.access_reload_ms, tell=tell_access_reload)
        try:
            handler = audit_handler(self.audit_file)
        except OSError as error:
            raise AccessFileError(f"{self.audit_file}: {error.strerror}", path=str(self.audit_file)) from None
        return Guard(access, rates, Audit(handler, service=service, repeat_ms=self.audit_repeat_ms))


def tell_access_reload(fault: StoreError | None) -> None:
    """One event a change of the files."""
    if fault is None:
        _log.info("access_reloaded")
    else:
        _log.error("access_reload_failed", reason=fault.message)
