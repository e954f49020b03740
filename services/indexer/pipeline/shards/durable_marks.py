"""Durable marks: a thread that syncs what was built and then says so, while the follower goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from tidemark.index.rebuild_request import RebuildRequest
from tidemark.store.marks import Marks


class Shard(Protocol):
    """What an epoch builds: a shard of queues, or the key index."""

    damages: int
    oddities: int

    def checker(self) -> Any:
        """The walk it needs."""

    def begin(self, mark: int, *, intended: int) -> int:
        """Take over at *mark*; where to build from."""

    def disown(self) -> None:
        """Begin on files that a holder before, which may wake up, does not have open."""

    def sync_from(self, mark: int) -> None:
        """Sync what another process may have written of records at or above *mark*."""

    def resume_at(self, physical_end: int) -> int:
        """Return where to build from after `truncate` at *physical_end*."""

    def truncate(self, physical_end: int, marks: Marks) -> None:
        """Drop everything at or above *physical_end*. Killed at any step, it is repeated by the next holder."""

    def begin_rebuild(self, request: RebuildRequest, position: int) -> None:
        """Build only the requested files, from *position* on, until `end_rebuild`."""

    def end_rebuild(self) -> None:
        """Build everything from here on."""

    def expire(self, log_min: int) -> int:
        """Delete files about records that are all below *log_min*; how many."""

    def hold_back(self, part: Any) -> bool:
        """Take a part to be built with the next one, where that costs less than each alone; whether it did."""

    def apply(self, part: Any) -> int:
        """Build a part, behind those that were held back."""

    def take_touched(self) -> Any:
        """What was written since the last call."""

    def flush(self, touched: Any) -> None:
        """Sync it."""

    def close(self) -> None:
        """Close its files."""


class DurableMarks:
    """Moves one shard's durable mark.

    lock                  held by whoever changes the shard or what is built
    built                 where the shard is built up to: its visible mark, as long as it is held
    wait_for_predecessor  returns once what the holder before has built is synced
    confirm               raises when the shard is another's by now
    """

    def __init__(
        self,
        marks: Marks,
        shard_number: int,
        shard: Shard,
        *,
        interval_s: float,
        lock: threading.Lock,
        built: Callable[[], int],
        wait_for_predecessor: Callable[[], None],
        confirm: Callable[[], None],
    ) -> None:
        self._marks = marks
        self._number = shard_number
        self._shard = shard
        self._built = built
        self._wait_for_predecessor = wait_for_predecessor
        self._confirm = confirm
        self._interval_s = interval_s
        self._lock = lock
        self._asked = threading.Event()
        self._ending = False
        self._abandoned = False
        self._caught_up = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, if it is not there yet."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="durable-marks", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._wait_for_predecessor()
            is_last = False
            while not is_last:
                asked = self._asked.wait(self._interval_s)
                self._asked.clear()
                is_last = self._ending  # before it looks what there is to sync
                if not self._abandoned:
                    self._sync()
                if asked:
                    self._caught_up.set()
        except BaseException as error:
            self._failure = error
            self._caught_up.set()

    def _sync(self) -> None:
        with self._lock:
            built = self._built()
            touched = self._shard.take_touched()
        self._shard.flush(touched)
        if self._abandoned:  # a sync of the same file may have failed, and this one told nothing of it
            return
        self._confirm()
        if built != self._marks.durable(self._number):
            self._marks.publish_durable(self._number, built)

    def raise_failure(self) -> None:
        """A failed sync ends the task: nothing is tried again on the same descriptors."""
        if self._failure is not None:
            raise self._failure

    def ask(self) -> None:
        """Begin to catch up now: what the final `stop` has to sync gets small."""
        self._caught_up.clear()
        self._asked.set()

    def has_caught_up(self) -> bool:
        """Whether the sync that `ask` began is done; raises what it failed with."""
        is_done = self._caught_up.is_set()
        self.raise_failure()
        return is_done

    def abandon(self) -> None:
        """End the thread, and leave the mark where it is: the follower has failed, perhaps at a sync."""
        self._abandoned = self._ending = True
        self._asked.set()
        if self._thread is not None:
            self._thread.join()

    def begin_to_stop(self) -> None:
        """Nothing is built any more: let the thread sync the rest and end."""
        self._ending = True
        self._asked.set()
        self.start()

    def stop(self) -> None:
        """End the thread with everything synced: afterwards what is built is durable."""
        self.begin_to_stop()
        assert self._thread is not None
        self._thread.join()
        self.raise_failure()
