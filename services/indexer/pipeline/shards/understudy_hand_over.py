"""Locks of the understudy: it builds a shard only while no task of Spark holds it or waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from tidemark.store.lock import FolderLock

from ..plan import EpochPlan
from .hand_over import STANDBY_CHECK_S, HandOver, is_at_work, is_followed, is_held

UNDERSTUDY = 2  # its number in rows of progress; Spark's followers are 0 and 1
_LOOK_S = 0.1


class UnderstudyHandOver(HandOver):
    """The understudy's locks on the shards of one task.

    stopping   set when the service stops; unlike Spark's tasks, the understudy ignores the stop flag
    yields     False if no Spark runs: then no other task waits for the shards
    on_change  called with True when the shards are acquired, with False when another task has them
    """

    def __init__(
        self,
        plan: EpochPlan,
        shards: Sequence[int],
        stopping: threading.Event,
        *,
        yields: bool,
        on_change: Callable[[bool], None],
    ) -> None:
        super().__init__(plan, shards, UNDERSTUDY)
        self._asked_to_stop = stopping
        self._yields = yields
        self._on_change = on_change
        self._standby_path = plan.standby_path(shards[0])
        self._stands_in = [FolderLock(plan.understudy_path(shard)) for shard in shards]

    def acquire(self) -> float:
        """Wait until the shards are free and awaited by no other task, or until the service stops; return the wait."""
        began = time.monotonic()
        refusals = 0
        while not self._asked_to_stop.is_set() and not self._try_acquire():
            refusals += 1
            if refusals > 1:  # the first one may come from `is_held`, which takes a free lock for a moment
                self._on_change(False)
            self._asked_to_stop.wait(_LOOK_S)
        now = time.monotonic()
        self._deadline = now + self._plan.epoch_ms / 1000
        return now - began

    def _try_acquire(self) -> bool:
        acquired = []
        for lock in self._locks:
            if not lock.try_acquire():
                break
            acquired.append(lock)
        if len(acquired) < len(self._locks) or self._is_awaited_now():
            for lock in acquired:
                lock.unlock()
            return False
        for lock in self._stands_in:
            lock.acquire()
        self._on_change(True)
        return True

    def _is_awaited_now(self) -> bool:
        return self._yields and is_held(self._standby_path)

    def _is_stopping(self) -> bool:
        return self._asked_to_stop.is_set()

    def is_over(self) -> bool:
        """Return True if a task of Spark waits for the shards, or if it is time to report progress."""
        now = time.monotonic()
        if not self._over and now >= self._next_check:
            self._next_check = now + STANDBY_CHECK_S
            self._awaited = self._is_awaited_now()
            self._over = self._awaited or now >= self._deadline
        return self._over

    @property
    def seconds_left(self) -> float:
        """Seconds until `is_over` can change, at least 0.05."""
        return STANDBY_CHECK_S if self._yields else super().seconds_left

    def pass_shards_on(self) -> None:
        """Release the shards so that Spark's task builds while the understudy still syncs its own work."""
        super().pass_shards_on()
        if self._last_sync:
            for lock in self._stands_in:
                lock.unlock()
            self._on_change(False)

    def release(self) -> None:
        """Release all locks. Nothing is left to sync."""
        super().release()
        for lock in self._stands_in:
            lock.release()


def is_stood_in(plan: EpochPlan, shard: int) -> bool:
    """Return True if the understudy builds the shard."""
    return is_held(plan.understudy_path(shard))


def is_followed_by_spark(plan: EpochPlan, shard: int) -> bool:
    """Return True if a task of Spark holds the shard."""
    return is_followed(plan, shard) and not is_stood_in(plan, shard)


def is_at_work_for_spark(plan: EpochPlan, shard: int) -> bool:
    """Return True if a task of Spark holds the shard, or a task has released it and still syncs."""
    return is_at_work(plan, shard) and not is_stood_in(plan, shard)
