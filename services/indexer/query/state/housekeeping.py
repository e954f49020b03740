"""Endless loops that free what no request would free."""

from __future__ import annotations

import asyncio
import contextlib

from tidemark.errors import StoreError

from .service_state import ServiceState


async def close_deleted_files(state: ServiceState, every_s: float = 10.0) -> None:
    """Close files that retention has deleted."""
    while True:
        await asyncio.sleep(every_s)
        with contextlib.suppress(StoreError, OSError):  # the next request reports it
            await state.reads.read(state.store.close_deleted)
            await state.reads.read(state.index.tables)


async def remove_expired_members(state: ServiceState) -> None:
    """Remove members whose session has timed out, because no request may name their group."""
    while True:
        await asyncio.sleep(state.settings.query_recheck_ms / 1000)
        state.groups.leases.expire()
