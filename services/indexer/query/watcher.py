"""Waiting for messages to become visible: one thread sleeps on the marks' count word and wakes whom it concerns."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

from tidemark.errors import InFlightLimitError, StoreError
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark
from tidemark.store import wake

Ready = Callable[[Watermark], bool]
_RETRY_AFTER_MS = 1000


class _Waiter:
    def __init__(self, ready: Ready, loop: asyncio.AbstractEventLoop) -> None:
        self.ready = ready
        self.loop = loop
        self.event = asyncio.Event()

    def is_ready(self, watermark: Watermark) -> bool:
        """A question that fails counts as yes: whoever asked it finds out by itself."""
        try:
            return self.ready(watermark)
        except (StoreError, OSError):
            return True


class WatermarkWatcher:
    """Wakes requests that wait. The thread runs only while somebody does."""

    def __init__(self, store: StoreReader, *, recheck_ms: int, max_waiting: int) -> None:
        self._store = store
        self._recheck_s = recheck_ms / 1000
        self._max_waiting = max_waiting
        self._waiters: set[_Waiter] = set()
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="watermark-watcher", daemon=True)

    @property
    def waiting(self) -> int:
        """Requests that wait now."""
        return len(self._waiters)

    @property
    def is_stopped(self) -> bool:
        """Whether nobody may wait any more."""
        return self._stopped

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Wake everybody, for good: who waits answers with what there is."""
        with self._changed:
            self._stopped = True
            for waiter in self._waiters:
                waiter.loop.call_soon_threadsafe(waiter.event.set)
            self._changed.notify()

    async def wait(self, ready: Ready, timeout_s: float) -> bool:
        """Until *ready* says so of the watermark, at most *timeout_s*; whether it did (or the service stops).

        raises InFlightLimitError when too many wait already
        """
        waiter = _Waiter(ready, asyncio.get_running_loop())
        with self._changed:
            if self._stopped:
                return False
            if len(self._waiters) >= self._max_waiting:
                raise InFlightLimitError(
                    "too many requests wait", limit=self._max_waiting, retry_after_ms=_RETRY_AFTER_MS
                )
            self._waiters.add(waiter)
            self._changed.notify()
        try:
            if waiter.is_ready(self._store.watermark()):  # it came between the asker's look and this one
                return True
            await asyncio.wait_for(waiter.event.wait(), timeout_s)
        except TimeoutError:
            return False
        finally:
            with self._changed:
                self._waiters.discard(waiter)
        return True

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiters and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
            # The word first, then who waits, then the watermark: whoever comes or is published later changes the word.
            marks = self._store.watermarks.marks
            address = None if marks is None else marks.count_word_address()
            seen = 0 if address is None else wake.word_at(address)
            self._look()
            wake.wait(address, seen, self._recheck_s)

    def _look(self) -> None:
        """Wake who is ready."""
        with self._changed:
            waiters = list(self._waiters)
        try:
            watermark = self._store.watermark()
        except (StoreError, OSError):
            return
        for waiter in waiters:
            if waiter.event.is_set() or not waiter.is_ready(watermark):
                continue
            with contextlib.suppress(RuntimeError):  # its loop is closed
                waiter.loop.call_soon_threadsafe(waiter.event.set)
            with self._changed:
                self._waiters.discard(waiter)
