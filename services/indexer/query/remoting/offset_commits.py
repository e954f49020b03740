"""OffsetCommits: offsets that RocketMQ's clients commit, most of them one way; written together at an interval."""

from __future__ import annotations

import asyncio
import time
from weakref import WeakValueDictionary

import structlog

from tidemark.errors import ArgumentIllegalError, QueueIllegalError, StoreError
from tidemark.format.topic_name import is_group_name
from tidemark.status import status_of

from ..groups.consumer_groups import ConsumerGroups
from ..groups.consumer_offsets import ConsumerOffset

log = structlog.get_logger()

_QUIET_S = 60.0  # between two log lines about refused offsets

_Key = tuple[str, str]  # group, topic


def offset_to_commit(group: str, topic: str, queue_id: int, offset: int) -> ConsumerOffset:
    """Return the offset that a client commits. Raises ArgumentIllegalError if no group can have it."""
    if not is_group_name(group):
        raise ArgumentIllegalError(f"{group[:255]!r} is not a group name", argument="consumerGroup")
    for name, value in (("queueId", queue_id), ("commitOffset", offset)):
        if value < 0:
            raise ArgumentIllegalError(f"{name} is {value}, and must be at least 0", argument=name)
    return ConsumerOffset(group, topic, queue_id, offset)


class OffsetCommits:
    """Commits on their way to the table of offsets. Lives on the event loop. interval_s: between two writes."""

    def __init__(self, groups: ConsumerGroups, *, interval_s: float) -> None:
        self._groups = groups
        self._interval_s = interval_s
        self._pending: dict[_Key, dict[int, int]] = {}
        self._writing: dict[_Key, dict[int, int]] = {}
        self._orders: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()  # of the writes in work
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
        self._plan()

    def _plan(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._write_soon())

    async def put_now(self, offset: ConsumerOffset) -> None:
        """Write *offset*, which is durable when this returns. Raises as `ConsumerGroups.reset`."""
        key, queue_id = (offset.group, offset.topic), offset.queue_id
        older = self._pending.get(key, {}).pop(queue_id, None)  # it must not follow
        try:
            async with self._order(key):
                await self._groups.set_for_clients(offset.group, [offset])
        except StoreError:
            if older is not None:
                self._pending.setdefault(key, {}).setdefault(queue_id, older)
                self._plan()
            raise

    def _order(self, key: _Key) -> asyncio.Lock:
        """Return the lock under which offsets of *key* are written, one write after the other."""
        order = self._orders.get(key)
        if order is None:
            order = self._orders[key] = asyncio.Lock()
        return order

    async def close(self) -> None:
        """Write the offsets that are pending."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for key, queues in self._writing.items():  # the cancelled task may not have written them
            self._pending[key] = queues | self._pending.get(key, {})
        await self._write()

    async def _write_soon(self) -> None:
        while self._pending:
            await asyncio.sleep(self._interval_s)
            await self._write()
        self._task = None

    async def _write(self) -> None:
        self._writing, self._pending = self._pending, {}
        await asyncio.gather(*map(self._write_one, list(self._writing)))

    async def _write_one(self, key: _Key) -> None:
        async with self._order(key):
            offsets = [ConsumerOffset(*key, queue_id, offset) for queue_id, offset in self._writing[key].items()]
            await self._set(offsets)
            del self._writing[key]

    async def _set(self, offsets: list[ConsumerOffset]) -> None:
        """Set *offsets* of one group and topic. Those that are refused do not prevent the others."""
        if not offsets:
            return
        group, topic, *_ = offsets[0]
        try:
            await self._groups.set_for_clients(group, offsets)
        except StoreError as error:
            if len(offsets) > 1 and isinstance(error, ArgumentIllegalError | QueueIllegalError):
                for offset in offsets:
                    await self._set([offset])
            else:
                self._log(group, topic, error)
        except Exception as error:  # a fault of one group must not end the commits of all
            log.error("offset_commit_failed", group=group, topic=topic, exc_info=error)

    def _log(self, group: str, topic: str, error: StoreError) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_s >= _QUIET_S:
            self._logged_s = now_s
            log.warning(
                "offset_commit_refused", group=group, topic=topic, reason=status_of(error).reason, error=error.message
            )
