"""Waits for messages to become visible: the event loop watches the marks and wakes the requests that are ready."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Protocol

from starlette.requests import Request

from tidemark.errors import InFlightLimitError, StoreError
from tidemark.format.topic_name import LIGHT_QUEUE_PREFIX
from tidemark.read.log.new_records import NewRecords
from tidemark.read.look import one_look
from tidemark.read.store_moment import StoreMoment
from tidemark.read.store_reader import Catalog, StoreReader
from tidemark.read.watermark import Watermark
from tidemark.store.file_watch import FileWatch
from tidemark.store.marks import Marks

from .departure import Departure, departure_of

Ready = Callable[[Watermark], bool | None]  # None: not checked, because the last check was too short a time ago
Queues = Collection[tuple[str, int]]  # topic and queue id
_RETRY_AFTER_MS = 1000
_POLL_S = 0.002  # interval while the marks cannot be watched
_FEW = 8  # waiting requests and followed queues; a check of so few costs less than a look at the new records
_TURNS = 32  # rechecks in which each queue is checked once although nothing is known to have changed
_AT_ONCE = 4  # of these queues; then the event loop handles other events


class WatermarkListener(Protocol):
    """Hears of every watermark."""

    @property
    def watched(self) -> Queues:
        """The queues that the listener checks."""

    def watermark_read(self, watermark: Watermark, queues: Queues | None) -> None:
        """Handle *watermark*, which may be the same as before. It is called on the event loop.

        queues: those with new records, except light queues; None: any queue may have changed.
        """

    def stopped(self) -> None:
        """Handle the stop of the service."""


class _Waiter:
    """A waiting request. queues: those whose records can make it ready; None: any record."""

    def __init__(self, ready: Ready, outcome: asyncio.Future[bool], queues: Queues | None) -> None:
        self.ready = ready
        self.outcome = outcome
        is_plain = queues is not None and not any(topic.startswith(LIGHT_QUEUE_PREFIX) for topic, _ in queues)
        self.queues = queues if is_plain else None

    def is_ready(self, watermark: Watermark) -> bool | None:
        """Return True if the request is ready, or if its check fails: its next read then reports the error."""
        try:
            return self.ready(watermark)
        except (StoreError, OSError):
            return True

    def end(self, is_ready: bool) -> None:
        """End the wait."""
        if not self.outcome.done():
            self.outcome.set_result(is_ready)


class _Waiters:
    """The waiting requests, by the queues that they wait for."""

    def __init__(self) -> None:
        self.all: set[_Waiter] = set()
        self._of_any_queue: set[_Waiter] = set()
        self._unsure: set[_Waiter] = set()  # not checked although their queues have new records
        self._by_queue: dict[tuple[str, int], set[_Waiter]] = {}

    @property
    def queues(self) -> Queues:
        return self._by_queue.keys()

    def add(self, waiter: _Waiter) -> None:
        self.all.add(waiter)
        if waiter.queues is None:
            self._of_any_queue.add(waiter)
        for queue in waiter.queues or ():
            self._by_queue.setdefault(queue, set()).add(waiter)

    def remove(self, waiter: _Waiter) -> None:
        self.all.discard(waiter)
        self._of_any_queue.discard(waiter)
        self._unsure.discard(waiter)
        for queue in waiter.queues or ():
            waiting = self._by_queue.get(queue, set())
            waiting.discard(waiter)
            if not waiting:
                self._by_queue.pop(queue, None)

    def wake(self, queues: Queues | None, watermark: Watermark) -> None:
        """End the wait of the ready ones for which a record of *queues* can have arrived; None: of any queue."""
        checked = self.all
        if queues is not None:
            checked = self._of_any_queue.union(self._unsure, *(self._by_queue.get(queue, ()) for queue in queues))
        self._unsure = set()
        self._wake_ready(checked, watermark)

    def wake_of(self, queues: Queues, watermark: Watermark) -> None:
        """End the wait of the ready ones that wait for one of *queues*."""
        self._wake_ready(set[_Waiter]().union(*(self._by_queue.get(queue, ()) for queue in queues)), watermark)

    def _wake_ready(self, checked: Collection[_Waiter], watermark: Watermark) -> None:
        for waiter in checked:
            if not waiter.outcome.done() and self.is_ready(waiter, watermark):
                waiter.end(True)

    def is_ready(self, waiter: _Waiter, watermark: Watermark) -> bool:
        """Return True if the waiter is ready; one that refuses the check is asked again with the next records."""
        is_ready = waiter.is_ready(watermark)
        if is_ready is None:
            self._unsure.add(waiter)
        return bool(is_ready)


class WatermarkWatcher:
    """Wakes waiting requests. Belongs to one event loop; checks the marks only while there are waiters or listeners.

    At a new watermark it checks the requests that wait for a queue of the new records. At a recheck it checks all if a
    topic was deleted or files of the log have expired, and otherwise a share, a few at a time: a check of ten thousand
    requests would hold up the event loop.
    """

    def __init__(
        self, store: StoreReader, *, recheck_ms: int, max_waiting: int, max_waiting_per_client: int | None = None
    ) -> None:
        self._store = store
        self._recheck_s = recheck_ms / 1000
        self._max_waiting = max_waiting
        self._max_waiting_per_client = max_waiting_per_client or max_waiting
        self._waiting_by_client: dict[str, int] = {}
        self._waiters = _Waiters()
        self._new_records = NewRecords(store.log)
        self._seen: Watermark | None = None  # at the last look
        self._rest: tuple[int, Catalog | None] | None = None  # the log's minimum, and the topics, at the last recheck
        self._turn = 0
        self._others: list[tuple[str, int]] = []  # queues still to be checked in this turn
        self._listeners: set[WatermarkListener] = set()
        self.followers = 0  # number of requests that stay open
        self.looks = 0  # number of checks of all waiting requests, so far
        self._is_stopped = False
        self._loop: asyncio.AbstractEventLoop
        self._watch: FileWatch | None = None
        self._watched: Marks | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Number of waiting requests, without followers."""
        return len(self._waiters.all)

    @property
    def is_stopped(self) -> bool:
        """True after `stop` or `close`: requests do not wait any more."""
        return self._is_stopped

    def listen(self, listener: WatermarkListener) -> None:
        """Pass every watermark to *listener* until `listen_no_more`."""
        self._listeners.add(listener)
        if self._timer is None:
            self._arm()

    def listen_no_more(self, listener: WatermarkListener) -> None:
        """End `listen`."""
        self._listeners.discard(listener)

    @contextlib.contextmanager
    def followed(self, client: str) -> Iterator[None]:
        """Count a request that stays open as a waiting one. Raises as `wait`."""
        self._require_place(client)
        self.followers += 1
        self._enter(client)
        try:
            yield
        finally:
            self.followers -= 1
            self._leave(client)

    def start(self) -> None:
        """Start watching on the running event loop."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):  # too many watches on this machine, or none supported: poll instead
            self._watch = FileWatch()

    def stop(self) -> None:
        """Wake all waiters permanently; each answers with the data available. Safe in a signal handler."""
        self._is_stopped = True
        with contextlib.suppress(AttributeError, RuntimeError):  # never started, or the loop is closed
            self._loop.call_soon_threadsafe(self._wake_all)

    def close(self) -> None:
        """Wake all waiters, and stop watching."""
        self._is_stopped = True
        self._wake_all()
        self._disarm()
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    async def wait_for_request(
        self, request: Request, ready: Ready, deadline: float, looks: int | None = None, queues: Queues | None = None
    ) -> bool:
        """Wait until *ready*, *deadline* (monotonic) or a disconnect; return True if the caller should read again.

        Args:
            looks, queues: as for `wait`.
        """
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        client = "" if request.client is None else request.client.host
        departure = departure_of(request.scope)
        return await self.wait(ready, left, client=client, looks=looks, queues=queues, departure=departure)

    async def wait(
        self,
        ready: Ready,
        timeout_s: float,
        *,
        client: str = "",
        looks: int | None = None,
        queues: Queues | None = None,
        departure: Departure | None = None,
    ) -> bool:
        """Wait until *ready* returns True for the watermark, at most *timeout_s*.

        Args:
            client: the client's address.
            looks: `self.looks` when the caller began to find out that it is not ready. Without a look since then, the
                marks have not changed, or their change is still to be noticed.
            queues: the queues whose records can make it ready; None if others or anything else can.
            departure: of the client, which ends the wait.

        Returns:
            True if it is ready or the service stops during the wait; False after the timeout, a disconnect, or a stop
            before.

        Raises:
            InFlightLimitError: too many requests wait already, of this client or in all.
        """
        if self._is_stopped:
            return False
        self._require_place(client)
        waiter = _Waiter(ready, self._loop.create_future(), queues)
        self._waiters.add(waiter)
        self._enter(client)
        if self._timer is None:
            self._arm()
        end = functools.partial(waiter.end, False)
        timeout = self._loop.call_later(timeout_s, end)
        if departure is not None:
            departure.add(end)
        try:
            if looks != self.looks and self._waiters.is_ready(waiter, self._store.watermark()):  # since then
                return True
            return await waiter.outcome
        finally:
            timeout.cancel()
            if departure is not None:
                departure.discard(end)
            self._waiters.remove(waiter)
            self._leave(client)

    def _require_place(self, client: str) -> None:
        waiting = len(self._waiters.all) + self.followers
        if waiting >= self._max_waiting:
            raise InFlightLimitError(
                f"{waiting} requests wait: at most {self._max_waiting} (TIDEMARK_QUERY_MAX_WAITING)",
                limit=self._max_waiting,
                retry_after_ms=_RETRY_AFTER_MS,
            )
        limit = self._max_waiting_per_client
        if self._waiting_by_client.get(client, 0) >= limit:
            raise InFlightLimitError(
                f"{limit} requests from this address wait, which is the limit (TIDEMARK_QUERY_MAX_WAITING_PER_CLIENT)",
                limit=limit,
                retry_after_ms=_RETRY_AFTER_MS,
            )

    def _enter(self, client: str) -> None:
        self._waiting_by_client[client] = self._waiting_by_client.get(client, 0) + 1

    def _leave(self, client: str) -> None:
        self._waiting_by_client[client] -= 1
        if not self._waiting_by_client[client]:
            del self._waiting_by_client[client]

    @property
    def _is_needed(self) -> bool:
        return bool(self._waiters.all or self._listeners)

    # Armed until a check finds no waiter: a consumer soon waits again, and arming costs as much as a check.

    def _arm(self) -> None:
        if self._watch is not None:
            self._loop.add_reader(self._watch.descriptor, self._marks_changed)
        self._recheck()

    def _disarm(self) -> None:
        if self._watch is not None:
            self._loop.remove_reader(self._watch.descriptor)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _marks_changed(self) -> None:
        if not self._is_needed:
            self._disarm()
        elif self._watch is not None and self._watch.take():
            self._look()

    def _recheck(self) -> None:
        """Check for changes that the watch does not report: replaced marks, deleted topics and expired files."""
        if not self._is_needed:
            self._disarm()
            return
        self._watch_marks()
        self._look(is_recheck=True)
        self._timer = self._loop.call_later(self._recheck_s if self._watched else _POLL_S, self._recheck)

    def _watch_marks(self) -> None:
        marks = self._store.watermarks.marks
        if marks is self._watched or self._watch is None:
            return
        self._watched = None
        if marks is not None:
            with contextlib.suppress(OSError):  # just replaced: the next recheck watches the new file
                self._watch.watch(self._store.paths.marks)
                self._watched = marks

    def _look(self, *, is_recheck: bool = False) -> None:
        """Wake the waiters that are ready."""
        self.looks += 1
        try:
            watermark = self._store.watermark()
        except (StoreError, OSError):
            return
        before, self._seen = self._seen, watermark
        with one_look():
            queues = self._grown(before, watermark)
            if is_recheck and queues is not None and self._has_changed(watermark):
                queues = None
            self._waiters.wake(queues, watermark)
            if is_recheck and queues is not None:
                queues = {*queues, *self._begin_turn()}
            for listener in self._listeners:
                listener.watermark_read(watermark, queues)

    def _begin_turn(self) -> Queues:
        """Begin to check a share of the queues of the waiters; return the share of the queues of the listeners.

        The share is for units that the pipeline builds again below the watermark.
        """
        self._turn = (self._turn + 1) % _TURNS
        are_under_way = bool(self._others)
        self._others += self._share_of(self._waiters.queues)
        if self._others and not are_under_way:
            self._loop.call_soon(self._check_others)
        return self._share_of(itertools.chain(*(listener.watched for listener in self._listeners)))

    def _share_of(self, queues: Iterable[tuple[str, int]]) -> Queues:
        return [queue for queue in queues if hash(queue) % _TURNS == self._turn]

    def _check_others(self) -> None:
        """Check some of the waiters' queues of this turn."""
        queues, self._others = self._others[:_AT_ONCE], self._others[_AT_ONCE:]
        if self._is_stopped or not self._is_needed or self._seen is None:
            self._others = []
            return
        with one_look():
            self._waiters.wake_of(queues, self._seen)
        if self._others:
            self._loop.call_soon(self._check_others)

    def _grown(self, before: Watermark | None, now: Watermark) -> Queues | None:
        """Return the queues of the records between two watermarks; None if they are not known, or not worth knowing."""
        if before is None or before.is_held or now.is_held or (before.term, before.cuts) != (now.term, now.cuts):
            return None
        if len(self._waiters.all) + sum(len(listener.watched) for listener in self._listeners) <= _FEW:
            return None
        return self._new_records.queues(before.physical_offset, now.physical_offset)

    def _has_changed(self, watermark: Watermark) -> bool:
        """Return True if a topic was deleted or files of the log have expired since the last call, or may have."""
        try:
            _, log_min, catalog = StoreMoment.of_look(self._store, watermark)
        except (StoreError, OSError):  # the requests report it
            return True
        before, self._rest = self._rest, (log_min, catalog)
        return catalog is None or self._rest != before

    def _wake_all(self) -> None:
        for waiter in self._waiters.all:
            waiter.end(True)
        for listener in self._listeners:
            listener.stopped()
