"""QueueEnds: rings the bells of the followers whose queues have grown, once per watermark and queue."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from tidemark.errors import StoreError
from tidemark.format.topic_name import LIGHT_QUEUE_PREFIX
from tidemark.read.store_reader import Catalog, StoreReader
from tidemark.read.watermark import Watermark

from ..queue_allocation import Queue
from .bell import Bell
from .shared_pages import SharedPages
from .watermark_watcher import Queues, WatermarkWatcher


class _End:
    """The last known end of one queue, and its followers."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.bells: set[Bell] = set()
        self.offset: int | None = None


class QueueEnds:
    """The ends of all followed queues. pages: cleared with each new watermark."""

    def __init__(self, store: StoreReader, watcher: WatermarkWatcher, pages: SharedPages[Any]) -> None:
        self._store = store
        self._watcher = watcher
        self._pages = pages
        self._ends: dict[Queue, _End] = {}
        self._light_ends: dict[Queue, _End] = {}  # those of light queues, whose units point at records of others

    @contextlib.contextmanager
    def ringing(self, bell: Bell, queues: Sequence[Queue]) -> Iterator[None]:
        """Ring *bell* whenever one of *queues* has grown, or its state has to be read again, until the block ends."""
        if not self._ends:
            self._watcher.listen(self)
        for queue in queues:
            end = self._ends.setdefault(queue, _End(queue))
            end.bells.add(bell)
            if queue.topic.startswith(LIGHT_QUEUE_PREFIX):
                self._light_ends[queue] = end
        try:
            yield
        finally:
            for queue in queues:
                end = self._ends[queue]
                end.bells.discard(bell)
                if not end.bells:
                    del self._ends[queue]
                    self._light_ends.pop(queue, None)
            if not self._ends:
                self._watcher.listen_no_more(self)

    @property
    def watched(self) -> Queues:
        """The followed queues."""
        return self._ends.keys()

    def watermark_read(self, watermark: Watermark, queues: Queues | None) -> None:
        """Ring for the queues that have grown. The watcher calls this with every watermark that it reads."""
        ends = self._ends_of(queues)
        if not ends:
            return
        try:
            log_min, catalog = self._store.log_min, self._store.catalog()
            grown = [end for end in ends if self._has_changed(end, watermark, log_min, catalog)]
        except (StoreError, OSError):  # the followers' next read reports it
            grown = ends
        if grown:
            self._pages.clear()
        for end in grown:
            for bell in end.bells:
                bell.ring(end.queue)

    def _ends_of(self, queues: Queues | None) -> list[_End]:
        """Return the ends that records of *queues* can have moved: these, and those of light queues; None: all."""
        if queues is None:
            return list(self._ends.values())
        found = [end for queue in queues if (end := self._ends.get(Queue(*queue))) is not None]
        return found + list(self._light_ends.values())

    def stopped(self) -> None:
        """Ring for all: the service stops."""
        for end in self._ends.values():
            for bell in end.bells:
                bell.ring()

    def _has_changed(self, end: _End, watermark: Watermark, log_min: int, catalog: Catalog | None) -> bool:
        """Return True if the queue's end has moved, or cannot be read: the followers' next read reports the error."""
        before = end.offset
        try:
            queue = self._store.queue(*end.queue, catalog)
            tombstone = self._store.tombstone(end.queue.topic, catalog)
            bounds = queue.bounds(watermark, log_min=log_min, tombstone=tombstone)
            end.offset = bounds.units_end
        except (StoreError, OSError):
            end.offset = None
            return True
        return end.offset != before
