"""The files of a service that it reads again while it runs: TLS files and access rules."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tidemark.access.guard import Guard
from tidemark.tls.reloading import Reloading


@contextlib.asynccontextmanager
async def followed_files(tls: Reloading | None, guard: Guard) -> AsyncIterator[None]:
    """Read the files of *tls* and *guard* again when they change, and write its audit counts, within the block."""
    following = [*([] if tls is None else [tls.follow()]), *guard.followers()]
    tasks = [asyncio.create_task(one) for one in following]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
