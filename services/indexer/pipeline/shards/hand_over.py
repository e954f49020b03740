"""Hand-over of a shard between the two followers, and when an epoch ends.

Each shard has a lock, so every queue file has one builder. The task of the other query waits for it, warm, and goes
on within a millisecond. Both queries keep to one clock: query 0 lets go at even multiples of the epoch's length, query
1 at odd ones. So a mixed state (a retried task, a simultaneous start) heals at the next multiple, without anybody
agreeing on anything.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

from tidemark.store.lease import Lease
from tidemark.store.lock import FolderLock

from ..plan import EpochPlan

_STANDBY_CHECK_S = 0.05
_STOP_CHECK_S = 0.02


def seconds_to_deadline(now_s: float, *, follower: int, epoch_ms: int) -> float:
    """Until *follower* (0 or 1) lets go: in (0, 2 epochs], by the wall clock *now_s*."""
    period = 2 * epoch_ms / 1000
    phase = follower * epoch_ms / 1000
    return period - (now_s - phase) % period


class HandOver:
    """One task's hold of the shards that it builds."""

    def __init__(self, plan: EpochPlan, shards: Sequence[int], follower: int) -> None:
        self._plan = plan
        self._follower = follower
        self._locks = [plan.lock(plan.lock_path(shard)) for shard in shards]
        self._standby = plan.lock(plan.standby_path(shards[0]))
        self._last_sync = [] if plan.lease_ms else [FolderLock(plan.last_sync_path(shard)) for shard in shards]
        self._deadline = 0.0
        self._alone_until = math.inf
        self._next_check = 0.0
        self._over = False
        self._awaited = False
        self._next_look = 0.0
        self._stopping = False
        self._parent = os.getppid()
        self._stop_flag = str(plan.stop_flag)
        self._driver = None if plan.driver_pid is None else f"/proc/{plan.driver_pid}"

    def acquire(self) -> float:
        """Wait for the shards; returns how long that took, seconds. The epoch starts now."""
        began = time.monotonic()
        self._standby.acquire()
        for lock in self._locks:
            lock.acquire()
        self._standby.unlock()
        now = time.monotonic()
        now_s = time.time()
        epoch_ms = self._plan.epoch_ms_at(now_s)
        left = seconds_to_deadline(now_s, follower=self._follower, epoch_ms=max(epoch_ms, 1))
        self._deadline = now + left
        if self._follower == 0 and len(self._plan.shares) > 1:
            self._alone_until = self._deadline + epoch_ms / 1000
        return now - began

    def confirm(self) -> None:
        """StoreLockedError when this task has hung for so long that another holds the shards by now."""
        for lock in self._locks:
            if isinstance(lock, Lease):
                lock.confirm()

    @property
    def was_taken(self) -> bool:
        """Whether the holder before was silent: it may wake up, and write on into what it has open."""
        return any(isinstance(lock, Lease) and lock.was_taken for lock in self._locks)

    def is_stopping(self) -> bool:
        """Whether the whole pipeline ends: told so, or the driver or the daemon that made this process is gone.

        Looks every now and then: asked for each message it would cost as much as the message.
        """
        now = time.monotonic()
        if not self._stopping and now >= self._next_look:
            self._next_look = now + _STOP_CHECK_S
            self._stopping = self._is_stopping()
        return self._stopping

    def _is_stopping(self) -> bool:
        if os.path.exists(self._stop_flag) or os.getppid() != self._parent:
            return True
        return self._driver is not None and not os.path.exists(self._driver) and os.path.exists("/proc/self")

    def is_over(self) -> bool:
        """Whether the epoch's time is over and somebody waits for the shards: otherwise going on leaves no gap.

        Where tasks were killed, each follower may hold some of the shards, and no next epoch of either begins, so
        nobody ever comes to wait. Of several tasks one of follower 0 lets go an epoch later, whoever waits.
        """
        now = time.monotonic()
        if self._over or now < self._deadline or now < self._next_check:
            return self._over
        self._next_check = now + _STANDBY_CHECK_S
        if self._standby.try_acquire():
            self._standby.unlock()
            self._over = now >= self._alone_until
        else:
            self._over = self._awaited = True
        return self._over

    @property
    def is_awaited(self) -> bool:
        """Whether the epoch is over because somebody waits, who goes on as soon as the shards are let go."""
        return self._awaited and not self.is_stopping()

    @property
    def seconds_left(self) -> float:
        """Until something about the epoch's end can change, at least a moment."""
        return max(self._deadline - time.monotonic(), _STANDBY_CHECK_S)

    def let_go(self) -> None:
        """Let the next one build on while this one still syncs what it has built: that may `wait_for_last_sync`.

        Not where a shard is held by a lease: one that hangs in its sync would be waited for without an end.
        """
        for last_sync in self._last_sync:
            last_sync.acquire()
        if self._last_sync:
            for lock in self._locks:
                lock.unlock()

    def wait_for_last_sync(self, shard: int) -> None:
        """Until who held *shard* before has synced what it has built, or is gone."""
        if self._last_sync:
            lock = FolderLock(self._plan.last_sync_path(shard))
            lock.acquire()
            lock.release()

    def release(self) -> None:
        """Let the next one in; nothing is left to sync."""
        for lock in [*self._locks, self._standby]:
            lock.release()
        for last_sync in self._last_sync:
            last_sync.release()


def is_followed(plan: EpochPlan, shard: int) -> bool:
    """Whether somebody holds the shard."""
    return _is_held(plan.lock_path(shard))


def is_at_work(plan: EpochPlan, shard: int) -> bool:
    """Whether somebody holds the shard, or has let go of it and still syncs."""
    return is_followed(plan, shard) or _is_held(plan.last_sync_path(shard))


def _is_held(path: Path) -> bool:
    lock = FolderLock(path)
    try:
        return not lock.try_acquire()
    finally:
        lock.release()
