"""Departure: the end of a client's connection, which ends the waits of its requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.types import Scope

DEPARTURE = "tidemark.departure"  # extension of a request's scope


class Departure:
    """Callbacks for the end of one connection. Belongs to the event loop."""

    def __init__(self) -> None:
        self._callbacks: set[Callable[[], object]] = set()
        self.is_over = False

    def add(self, callback: Callable[[], object]) -> None:
        """Call *callback* once at the end of the connection; now if it has ended."""
        if self.is_over:
            callback()
        else:
            self._callbacks.add(callback)

    def discard(self, callback: Callable[[], object]) -> None:
        """Do not call *callback*."""
        self._callbacks.discard(callback)

    def happen(self) -> None:
        """Call the callbacks: the connection has ended."""
        self.is_over = True
        while self._callbacks:
            self._callbacks.pop()()


def departure_of(scope: Scope) -> Departure:
    """Return the departure of the client of a request; one that never happens if the server does not report it."""
    found: Any = scope.get("extensions", {}).get(DEPARTURE)
    return Departure() if found is None else found
