"""Audit: who did what, from where, and what came of it. No secret and no message is in it.

What changes something, and what is refused, is told when it happens; a repeat of the same within the interval is
counted, and the count told when the interval is over. So nobody can fill a disk by being refused, and reading and
writing cost a count.
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

_MOST_KINDS = 10_000  # remembered at once; beyond, all are told


class Deed(NamedTuple):
    """principal  empty: nobody knows who
    address    where from: IP address, without port
    action     the call or route
    resource   what was asked for, `Pub Topic:orders`
    outcome    ALLOWED, or the reason of the refusal; of what changes something: what came of it
    """

    principal: str
    address: str
    action: str
    resource: str
    outcome: str


class Audit:
    """handler: writes lines; service: who tells; repeat_ms: the interval. For one thread."""

    def __init__(self, handler: logging.Handler, *, service: str, repeat_ms: int) -> None:
        self._handler = handler
        self._service = service
        self._repeat_s = repeat_ms / 1000
        self._repeats: dict[Deed, int] = {}

    def note(self, deed: Deed) -> None:
        """Tell *deed*, or count it where it was told within the interval."""
        repeats = self._repeats.get(deed)
        if repeats is not None:
            self._repeats[deed] = repeats + 1
            return
        if len(self._repeats) >= _MOST_KINDS:
            self.tell_repeats()
        self._repeats[deed] = 0
        self.note_change(deed)

    def note_change(self, deed: Deed) -> None:
        """Tell *deed*, however often, with the id of its request."""
        self._write(deed, 1, current_request_id())

    def tell_repeats(self) -> None:
        """The interval is over."""
        for deed, repeats in self._repeats.items():
            if repeats:
                self._write(deed, repeats)
        self._repeats.clear()

    def close(self) -> None:
        """Nothing more happens: what was counted is told."""
        self.tell_repeats()
        self._handler.close()

    async def follow(self) -> None:
        """Tell repeats after each interval, for ever."""
        while True:
            await asyncio.sleep(self._repeat_s)
            self.tell_repeats()

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
    """Where lines go: to a file, opened again when it was moved away (logrotate); None: standard error.

    raises OSError where the file cannot be written
    """
    return logging.StreamHandler() if path is None else WatchedFileHandler(path, encoding="utf-8")
