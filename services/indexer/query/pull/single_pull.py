"""One pull request: reads the queue, waits for messages if the request asks for that, and reads again."""

from __future__ import annotations

import functools
import time
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from tidemark.read.cached import FEW_BYTES, FEW_MESSAGES
from tidemark.read.store_moment import StoreMoment
from tidemark.read.watermark import Watermark

from ..state.read_threads import steady
from ..state.service_state import ServiceState
from ..state.watermark_watcher import Queues, Ready
from .pulled import Pulled
from .queue_pull import QueuePull

A = TypeVar("A")
T = TypeVar("T")
Wait = Callable[[Ready, float, int, Queues], Awaitable[bool]]
"""Waits until Ready returns True or until a monotonic time; returns True if the caller should read again.

The other arguments are `WatermarkWatcher.looks` before the last read, and the queue.
"""
_MOST_RECORDS_BYTES, _MOST_COLUMNS_BYTES = 8 << 20, 4 << 20


class Reads(Protocol):
    """Runs reads of the store: `ReadThreads`, or with further limits."""

    async def read(self, function: Callable[[], T]) -> T: ...

    async def read_in_place(self, function: Callable[[], T]) -> T: ...


class Puller:
    """Answers one request for messages of one queue.

    reads: default: the service's threads.
    is_worth_waiting: returns True for a read after which the request waits, if it may.
    """

    def __init__(
        self,
        state: ServiceState,
        queue_pull: QueuePull,
        wait: Wait,
        *,
        reads: Reads | None = None,
        is_worth_waiting: Callable[[Pulled], bool] = lambda pulled: pulled.is_worth_waiting,
    ) -> None:
        self._state = state
        self._pull = queue_pull
        self._wait = wait
        self._reads = state.reads if reads is None else reads
        self._is_worth_waiting = is_worth_waiting

    async def run(self, make: Callable[[Pulled], A]) -> A:
        """Return the answer that *make* makes. *make* may run on a reading thread.

        Raises:
            OffsetTooSmallError, OffsetOutOfRangeError: the cursor is outside the queue.
            TopicNotFoundError, QueueIllegalError: there is no such topic or queue.
        """
        wait_ms = self._pull.limits.wait_ms
        deadline = time.monotonic() + wait_ms / 1000

        def look(*, last: bool) -> Pulled | tuple[A]:
            pulled = self._pull.look()
            return pulled if not last and self._is_worth_waiting(pulled) else (self._pull.answer(pulled, make),)

        looks = self._state.watcher.looks
        if wait_ms > 0 and steady(self._pull.is_at_known_end):
            seen = steady(functools.partial(look, last=False))
        else:
            seen = await self._look_where_it_costs_least(functools.partial(look, last=wait_ms == 0))
        while isinstance(seen, Pulled):
            self._pull.cursor = seen.result.next_offset
            last = time.monotonic() >= deadline
            if self._pull.cursor >= seen.result.bounds.units_end:
                last = not await self._wait(self._has_grown, deadline, looks, [self._pull.place])
            looks = self._state.watcher.looks
            seen = await self._look_where_it_costs_least(functools.partial(look, last=last))
        return seen[0]

    def _has_grown(self, watermark: Watermark) -> bool:
        return self._pull.has_grown(StoreMoment.of_look(self._state.store, watermark))

    def _look_where_it_costs_least(self, look: Callable[[], Pulled | tuple[A]]) -> Awaitable[Pulled | tuple[A]]:
        """Run *look* on the event loop if the answer is cheap, otherwise on a thread."""
        return (self._reads.read_in_place if self._is_light() else self._reads.read)(look)

    def _is_light(self) -> bool:
        """Return True if the answer takes so little time that the event loop may make it.

        Records are sent as they are read; columns are copied, and a pull of too many messages stops before it reads.
        """
        limits = self._pull.limits
        if limits.whole_records and limits.tags is None:
            return limits.max_bytes <= _MOST_RECORDS_BYTES
        if limits.as_columns and limits.tags is None and not limits.as_broker:
            return limits.max_bytes <= _MOST_COLUMNS_BYTES
        ahead = self._pull.ahead if limits.tags is not None else min(self._pull.ahead, limits.max_messages)
        return ahead <= FEW_MESSAGES and limits.max_bytes <= FEW_BYTES
