"""DurableMarks: a thread that syncs built files and then moves the durable mark, while the follower continues."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tidemark.store.marks import Marks

from .shard import Shard


class DurableMarks:
    """Background thread that syncs one shard's files and moves its durable mark.

    lock                  held during every change of the shard or of the value of `built`
    built                 returns the physical end of the built part: the visible mark while the shard is held
    wait_for_predecessor  returns once everything that the previous holder built is synced
    confirm               raises if another task has taken the shard
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
        self._requests = self._answered = 0  # calls of `ask`, and how many of them a sync has answered
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread unless it is running."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="durable-marks", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            self._wait_for_predecessor()
            is_last = False
            while not is_last:
                self._asked.wait(self._interval_s)
                self._asked.clear()  # before the reads, so that no request is lost
                is_last, requests = self._ending, self._requests  # before the sync, which covers everything built
                if not self._abandoned:
                    self._sync()
                self._answered = requests
        except BaseException as error:
            self._failure = error

    def _sync(self) -> None:
        with self._lock:
            built = self._built()
            sync = self._shard.take_sync()
        sync()
        if self._abandoned:  # another sync of a file may have failed; this one then succeeds without its pages
            return
        self._confirm()
        if built != self._marks.durable(self._number):
            self._marks.publish_durable(self._number, built)

    def raise_failure(self) -> None:
        """Raise the thread's failure. A failed sync ends the task: it is never retried on the same descriptors."""
        if self._failure is not None:
            raise self._failure

    def ask(self) -> None:
        """Start a sync now, so that little is left to sync in `stop`."""
        self._requests += 1
        self._asked.set()

    def has_caught_up(self) -> bool:
        """Return True if the sync that `ask` started is done. Raises the thread's failure."""
        self.raise_failure()
        return self._answered == self._requests

    def abandon(self) -> None:
        """End the thread without another move of the mark: the follower has failed, perhaps during a sync."""
        self._abandoned = self._ending = True
        self._asked.set()
        if self._thread is not None:
            self._thread.join()

    def begin_to_stop(self) -> None:
        """Let the thread sync the rest and end. The caller builds nothing more."""
        self._ending = True
        self._asked.set()
        self.start()

    def stop(self) -> None:
        """Sync everything built and end the thread. Everything built is durable on return."""
        self.begin_to_stop()
        assert self._thread is not None
        self._thread.join()
        self.raise_failure()
