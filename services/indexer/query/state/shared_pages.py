"""SharedPages: followers at the same offset of a queue share one read and one encoding of its next messages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, Protocol, TypeVar

_MOST_BYTES = 256 << 10  # of a page that is kept
_MOST_PAGES = 64


class _Page(Protocol):
    """Encoded messages: their size in bytes, and whether the queue had no further ones."""

    @property
    def size(self) -> int: ...

    @property
    def is_last(self) -> bool: ...


P = TypeVar("P", bound=_Page)


class SharedPages(Generic[P]):
    """Pages that are being made, and small pages up to the end of a queue, until the next watermark."""

    def __init__(self) -> None:
        self._pages: dict[Hashable, asyncio.Future[P]] = {}

    def clear(self) -> None:
        """Forget all pages, because the queues have grown."""
        self._pages = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[P]]) -> P:
        """Return the page of *key*, which *make* makes unless there is one. Raises as *make*."""
        known = self._pages.get(key)
        if known is not None:
            return await asyncio.shield(known)
        pages, made = self._pages, asyncio.get_running_loop().create_future()
        pages[key] = made
        try:
            page = await make()
        except BaseException as error:
            del pages[key]
            made.set_exception(error if isinstance(error, Exception) else RuntimeError("the service stops"))
            made.exception()  # read here: there may be no other waiting coroutine
            raise
        made.set_result(page)
        if not page.is_last or page.size > _MOST_BYTES or len(pages) > _MOST_PAGES:
            del pages[key]
        return page
