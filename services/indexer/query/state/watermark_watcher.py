"""Waiting for messages to become visible: the event loop itself hears who publishes, and wakes whom it concerns."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

from tidemark.errors import InFlightLimitError, StoreError
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark
from tidemark.store.file_watch import FileWatch
from tidemark.store.marks import Marks

Ready = Callable[[Watermark], bool]
_RETRY_AFTER_MS = 1000
_POLL_S = 0.002  # where nobody tells


class _Waiter:
    def __init__(self, ready: Ready, outcome: asyncio.Future[bool]) -> None:
        self.ready = ready
        self.outcome = outcome

    def is_ready(self, watermark: Watermark) -> bool:
        """A question that fails counts as yes: whoever asked it finds out by itself."""
        try:
            return self.ready(watermark)
        except (StoreError, OSError):
            return True

    def end(self, is_ready: bool) -> None:
        """Let the one who waits go on."""
        if not self.outcome.done():
            self.outcome.set_result(is_ready)


class WatermarkWatcher:
    """Wakes requests that wait. Lives on one event loop; looks only while somebody waits."""

    def __init__(
        self, store: StoreReader, *, recheck_ms: int, max_waiting: int, max_waiting_per_client: int | None = None
    ) -> None:
        self._store = store
        self._recheck_s = recheck_ms / 1000
        self._max_waiting = max_waiting
        self._max_waiting_per_client = max_waiting_per_client or max_waiting
        self._waiting_by_client: Counter[str] = Counter()
        self._waiters: set[_Waiter] = set()
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop
        self._watch: FileWatch | None = None
        self._watched: Marks | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Requests that wait now."""
        return len(self._waiters)

    @property
    def is_stopped(self) -> bool:
        """Whether nobody may wait any more."""
        return self._is_stopped

    def start(self) -> None:
        """Begin to watch, on the event loop that runs."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):  # too many of them on this machine, or none at all: looking helps
            self._watch = FileWatch()

    def stop(self) -> None:
        """Wake everybody, for good: who waits answers with what there is. From a signal's handler, too."""
        self._is_stopped = True
        with contextlib.suppress(AttributeError, RuntimeError):  # never started, or over
            self._loop.call_soon_threadsafe(self._wake_everybody)

    def close(self) -> None:
        """Watch no more."""
        self._is_stopped = True
        self._wake_everybody()
        self._disarm()
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    async def wait(self, ready: Ready, timeout_s: float, *, client: str = "") -> bool:
        """Until *ready* says so of the watermark, at most *timeout_s*; whether it did (or the service stops).

        client  its address
        raises InFlightLimitError when too many wait already, of this client or in all
        """
        if self._is_stopped:
            return False
        self._require_place(client)
        waiter = _Waiter(ready, self._loop.create_future())
        self._waiters.add(waiter)
        self._waiting_by_client[client] += 1
        if self._timer is None:
            self._arm()
        timeout = self._loop.call_later(timeout_s, waiter.end, False)
        try:
            if waiter.is_ready(self._store.watermark()):  # it came between the asker's look and this one
                return True
            return await waiter.outcome
        finally:
            timeout.cancel()
            self._waiters.discard(waiter)
            self._leave(client)

    def _require_place(self, client: str) -> None:
        if len(self._waiters) >= self._max_waiting:
            raise InFlightLimitError("too many requests wait", limit=self._max_waiting, retry_after_ms=_RETRY_AFTER_MS)
        limit = self._max_waiting_per_client
        if self._waiting_by_client.get(client, 0) >= limit:
            raise InFlightLimitError(
                "too many requests of this address wait", limit=limit, retry_after_ms=_RETRY_AFTER_MS
            )

    def _leave(self, client: str) -> None:
        self._waiting_by_client[client] -= 1
        if not self._waiting_by_client[client]:
            del self._waiting_by_client[client]

    # Armed until a look finds nobody waiting: a consumer is soon back, and arming costs as much as a look.

    def _arm(self) -> None:
        if self._watch is not None:
            self._loop.add_reader(self._watch.descriptor, self._told)
        self._recheck()

    def _disarm(self) -> None:
        if self._watch is not None:
            self._loop.remove_reader(self._watch.descriptor)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _told(self) -> None:
        if not self._waiters:
            self._disarm()
        elif self._watch is not None and self._watch.take():
            self._look()

    def _recheck(self) -> None:
        """What nobody tells: marks that came into being or were replaced, and expiry."""
        if not self._waiters:
            self._disarm()
            return
        self._watch_marks()
        self._look()
        self._timer = self._loop.call_later(self._recheck_s if self._watched else _POLL_S, self._recheck)

    def _watch_marks(self) -> None:
        marks = self._store.watermarks.marks
        if marks is self._watched or self._watch is None:
            return
        self._watched = None
        if marks is not None:
            with contextlib.suppress(OSError):  # just replaced: next time
                self._watch.watch(self._store.paths.marks)
                self._watched = marks

    def _look(self) -> None:
        """Wake who is ready."""
        try:
            watermark = self._store.watermark()
        except (StoreError, OSError):
            return
        for waiter in self._waiters:
            if not waiter.outcome.done() and waiter.is_ready(watermark):
                waiter.end(True)

    def _wake_everybody(self) -> None:
        for waiter in self._waiters:
            waiter.end(True)
