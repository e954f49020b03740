"""StopRequest: a signal's request to end the process, whatever role it has."""

from __future__ import annotations

import asyncio


class StopRequest:
    """The request, and the event that ends the present role. Lives on the event loop."""

    def __init__(self) -> None:
        self.is_asked_for = False
        self._role = asyncio.Event()

    def next_role(self) -> asyncio.Event:
        """Return the event that ends the next role; it is set if the process is to end."""
        self._role = asyncio.Event()
        if self.is_asked_for:
            self._role.set()
        return self._role

    def end_role(self) -> None:
        """End the present role, but not the process."""
        self._role.set()

    def ask(self) -> None:
        """End the process."""
        self.is_asked_for = True
        self._role.set()
