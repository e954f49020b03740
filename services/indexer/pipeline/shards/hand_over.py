"""Hand-over of shards between the two followers, and the end of an epoch.

Each shard has a lock, so every queue file has one builder. The other query's task waits for the lock, warm, and
continues within a millisecond. Both queries use the wall clock: query 0 releases its shards at even multiples of the
epoch's length, query 1 at odd ones. A mixed state (a retried task, a simultaneous start) therefore ends at the next
multiple, without communication between the tasks.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path

from tidemark.store.lease import Lease
from tidemark.store.lock import FolderLock
from tidemark.store.storage import Storage

from ..plan import EpochPlan
from .fenced_storage import FencedStorage

STANDBY_CHECK_S = 0.05
_STOP_CHECK_S = 0.02


def seconds_to_deadline(now_s: float, *, follower: int, epoch_ms: int) -> float:
    """Return the seconds until *follower* (0 or 1) releases its shards: in (0, 2 epochs], by the wall clock *now_s*."""
    period = 2 * epoch_ms / 1000
    phase = follower * epoch_ms / 1000
    return period - (now_s - phase) % period


class HandOver:
    """One task's locks on the shards that it builds."""

    def __init__(self, plan: EpochPlan, shards: Sequence[int], follower: int) -> None:
        self._plan = plan
        self._follower = follower
        self._locks = [plan.lock(plan.lock_path(shard)) for shard in shards]
        self._leases = [lock for lock in self._locks if isinstance(lock, Lease)]
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
        """Wait for the shards, start the epoch, and return the wait in seconds."""
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
        """Raise StoreLockedError if this task hung until its lease ended and another task took the shards."""
        for lease in self._leases:
            lease.confirm()

    def fenced(self, storage: Storage) -> Storage:
        """Return *storage* for work on the shards: with leases, one that confirms that this task holds them."""
        return FencedStorage(storage, self.confirm) if self._leases else storage

    @property
    def was_taken(self) -> bool:
        """True if the previous holder's lease ran out: it may resume and write into the files that it has open."""
        return any(lease.was_taken for lease in self._leases)

    def is_stopping(self) -> bool:
        """Return True if the pipeline ends: the stop flag exists, or the driver or the parent process is gone.

        The check runs at most every 20 ms: one per message would cost as much as the message.
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
        """Return True if the epoch's time is over and another task waits for the shards.

        Without a waiting task the epoch continues, so that no gap arises. After kills, each follower may hold some of
        the shards; then no next epoch of either begins and no task ever waits. Therefore, with several tasks,
        follower 0 releases its shards one epoch later even if no task waits.
        """
        now = time.monotonic()
        if self._over or now < self._deadline or now < self._next_check:
            return self._over
        self._next_check = now + STANDBY_CHECK_S
        if self._standby.try_acquire():
            self._standby.unlock()
            self._over = now >= self._alone_until
        else:
            self._over = self._awaited = True
        return self._over

    @property
    def is_awaited(self) -> bool:
        """True if the epoch is over because a successor waits, which continues as soon as the shards are released."""
        return self._awaited and not self.is_stopping()

    @property
    def seconds_left(self) -> float:
        """Seconds until `is_over` can change, at least 0.05."""
        return max(self._deadline - time.monotonic(), STANDBY_CHECK_S)

    def pass_shards_on(self) -> None:
        """Release the shards so that the successor builds while this task still syncs its own work.

        The last-sync locks are acquired first; the successor blocks on them in `wait_for_last_sync`. No-op with
        leases: a task that hangs in its sync would block the successor forever.
        """
        for last_sync in self._last_sync:
            last_sync.acquire()
        if self._last_sync:
            for lock in self._locks:
                lock.unlock()

    def wait_for_last_sync(self, shard: int) -> None:
        """Block until the previous holder of *shard* has finished its last sync or has exited. No-op with leases."""
        if self._last_sync:
            lock = FolderLock(self._plan.last_sync_path(shard))
            lock.acquire()
            lock.release()

    def release(self) -> None:
        """Release all locks. Nothing is left to sync."""
        for lock in [*self._locks, self._standby]:
            lock.release()
        for last_sync in self._last_sync:
            last_sync.release()


def is_followed(plan: EpochPlan, shard: int) -> bool:
    """Return True if a task holds the shard."""
    return is_held(plan.lock_path(shard))


def is_at_work(plan: EpochPlan, shard: int) -> bool:
    """Return True if a task holds the shard, or has released it and still syncs."""
    return is_followed(plan, shard) or is_held(plan.last_sync_path(shard))


def is_held(path: Path) -> bool:
    """Return True if a task holds the lock or lease at *path*."""
    lock = FolderLock(path)
    try:
        return not lock.try_acquire()
    finally:
        lock.release()
