"""OffsetCommits: offsets that RocketMQ's clients commit, most of them one way; written together at an interval."""

from __future__ import annotations

import asyncio
import time

import structlog

from tidemark.errors import StoreError
from tidemark.status import status_of

from ..groups.consumer_groups import ConsumerGroups
from ..groups.consumer_offsets import ConsumerOffset

log = structlog.get_logger()

_QUIET_S = 60.0  # between two log lines about refused offsets

_Key = tuple[str, str]  # group, topic


class OffsetCommits:
    """Commits on their way to the table of offsets. Lives on the event loop. interval_s: between two writes."""

    def __init__(self, groups: ConsumerGroups, *, interval_s: float) -> None:
        self._groups = groups
        self._interval_s = interval_s
        self._pending: dict[_Key, dict[int, int]] = {}
        self._writing: dict[_Key, dict[int, int]] = {}
        self._task: asyncio.Task[None] | None = None
        self._logged_s = float("-inf")

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return an offset that is not yet written; None if there is none."""
        for table in (self._pending, self._writing):
            offset = table.get((group, topic), {}).get(queue_id)
            if offset is not None:
                return offset
        return None

    def put(self, offset: ConsumerOffset) -> None:
        """Write *offset* soon; if it is refused, log that."""
        self._pending.setdefault((offset.group, offset.topic), {})[offset.queue_id] = offset.offset
        if self._task is None:
            self._task = asyncio.create_task(self._write_soon())

    async def put_now(self, offset: ConsumerOffset) -> None:
        """Write *offset*, which is durable when this returns. Raises as `ConsumerGroups.reset`."""
        queues = self._pending.get((offset.group, offset.topic))
        if queues is not None:
            queues.pop(offset.queue_id, None)  # an older offset must not follow
        await self._groups.set_for_clients(offset.group, [offset])

    async def close(self) -> None:
        """Write the offsets that are pending."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._write()

    async def _write_soon(self) -> None:
        while self._pending:
            await asyncio.sleep(self._interval_s)
            await self._write()
        self._task = None

    async def _write(self) -> None:
        self._writing, self._pending = self._pending, {}
        await asyncio.gather(*(self._write_one(*key, queues) for key, queues in self._writing.items()))
        self._writing = {}

    async def _write_one(self, group: str, topic: str, queues: dict[int, int]) -> None:
        offsets = [ConsumerOffset(group, topic, queue_id, offset) for queue_id, offset in queues.items()]
        try:
            await self._groups.set_for_clients(group, offsets)
        except StoreError as error:
            self._log(group, topic, error)

    def _log(self, group: str, topic: str, error: StoreError) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_s >= _QUIET_S:
            self._logged_s = now_s
            log.warning(
                "offset_commit_refused", group=group, topic=topic, reason=status_of(error).reason, error=error.message
            )
