"""ReadThreads: runs reads of the store on threads, or on the event loop if their data is in memory."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tidemark.read.cached import NotCachedError, cached_only
from tidemark.read.unit_run import UnitsGoneError

T = TypeVar("T")
_ATTEMPTS = 5


class ReadThreads:
    """A pool of *threads* reading threads."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "read")

    async def read(self, function: Callable[..., T], *arguments: Any) -> T:
        """Run *function* on a thread, so that a slow disk does not block other requests."""
        call = functools.partial(contextvars.copy_context().run, steady, function, *arguments)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    async def read_in_place(self, function: Callable[[], T]) -> T:
        """Run *function* on the event loop if all its data is in memory, otherwise as `read`.

        A switch to a thread takes longer than a small read.
        """
        try:
            return in_place(function)
        except NotCachedError:
            pass  # an error of the other attempt is not a consequence of this one
        return await self.read(function)

    def close(self) -> None:
        """Stop the threads and drop reads that have not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def in_place(function: Callable[[], T]) -> T:
    """Run *function* in this thread. Raises NotCachedError if that would wait for a disk or take long."""
    with cached_only():
        return steady(function)


def steady(function: Callable[..., T], *arguments: Any) -> T:
    """Return the function's result. Call it again if files expired during the call: it then reads other bounds."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return function(*arguments)
        except UnitsGoneError:
            continue
    return function(*arguments)
