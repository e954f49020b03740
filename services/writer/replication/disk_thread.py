"""DiskThread: the one thread that writes the files of a store that copies another log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tidemark.errors import UnavailableError


class DiskThread:
    """Calls from the event loop, one after the other."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)

    async def run(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Return what *call* returns. Raises UnavailableError for its OSError, and its other exceptions."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
        except OSError as error:
            raise UnavailableError(f"a file cannot be written: {error}") from error

    async def close(self, last: Callable[[], None]) -> None:
        """Make the *last* call, and end the thread."""
        await self.run(last)
        self._thread.shutdown()
