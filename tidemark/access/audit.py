"""Audit: log of each caller, its action, address and the outcome. Contains no secrets and no message data.

Administrative changes and refusals are logged when they happen. Repeats of the same entry within the interval are
only counted, and the count is logged at the end of the interval. Refused requests therefore cannot fill a disk, and
reads and writes cost one counter increment.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from datetime import UTC, datetime
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any, NamedTuple

from tidemark.tracing.request_id import current_request_id

_MOST_KINDS = 10_000  # distinct entries counted per interval; when full, the counts are written early


class Deed(NamedTuple):
    """An audit entry.

    principal  empty: not identified
    address    IP address of the client, without port
    action     the call or route
    resource   the resource and requested action, `Pub Topic:orders`
    outcome    ALLOWED or the reason of the refusal; for an administrative change its result
    """

    principal: str
    address: str
    action: str
    resource: str
    outcome: str


class Audit:
    """Writer of audit entries. handler: writes the lines; repeat_ms: the interval. Not thread-safe."""

    def __init__(self, handler: logging.Handler, *, service: str, repeat_ms: int) -> None:
        self._handler = handler
        self._service = service
        self._repeat_s = repeat_ms / 1000
        self._repeats: dict[Deed, int] = {}

    def note(self, deed: Deed) -> None:
        """Write *deed*, or count it if the same was already written in this interval."""
        repeats = self._repeats.get(deed)
        if repeats is not None:
            self._repeats[deed] = repeats + 1
            return
        if len(self._repeats) >= _MOST_KINDS:
            self.log_repeats()
        self._repeats[deed] = 0
        self.note_change(deed)

    def note_change(self, deed: Deed) -> None:
        """Write *deed* with its request id, even if it is a repeat."""
        self._write(deed, 1, current_request_id())

    def log_repeats(self) -> None:
        """Write the counts of repeats and start a new interval."""
        for deed, repeats in self._repeats.items():
            if repeats:
                self._write(deed, repeats)
        self._repeats.clear()

    def close(self) -> None:
        """Write the remaining counts and close the handler."""
        self.log_repeats()
        self._handler.close()

    async def follow(self) -> None:
        """Write the counts after each interval, until cancelled."""
        while True:
            await asyncio.sleep(self._repeat_s)
            self.log_repeats()

    def _write(self, deed: Deed, count: int, request_id: str | None = None) -> None:
        at = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "timestamp": at,
            "event": "audit",
            "service": self._service,
            **deed._asdict(),
            "count": count,
        }
        if request_id is not None:
            line["request_id"] = request_id
        self._handler.handle(logging.makeLogRecord({"msg": json.dumps(line)}))


def audit_handler(path: Path | None) -> logging.Handler:
    """Return a handler for audit lines that writes to *path*, or to standard error if it is None.

    The file is reopened after logrotate has moved it. Raises OSError if it cannot be written.
    """
    return logging.StreamHandler() if path is None else WatchedFileHandler(path, encoding="utf-8")
