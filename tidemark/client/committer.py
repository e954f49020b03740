"""Committer: puts what a consumer has dealt with on record, when it is asked to and now and then by itself."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from tidemark.client.assigned import Assigned
from tidemark.client.cursor import Cursors
from tidemark.client.received import TopicQueue
from tidemark.errors import GenerationStaleError, QueryUnreachableError, StoreClosedError, UnavailableError

_PATIENCE_S, _PAUSE_S = 10.0, 0.1


class Committer:
    """Commits positions of cursors.

    interval_s        of commits by itself; None: only when asked to
    first_unfinished  by queue, the least offset that is still being handled: nothing from there on is committed
    """

    def __init__(
        self,
        assigned: Assigned,
        *,
        interval_s: float | None,
        first_unfinished: Callable[[], Mapping[TopicQueue, int]],
    ) -> None:
        self._assigned = assigned
        self._interval_s = interval_s
        self._first_unfinished = first_unfinished
        self._due = time.monotonic() + (interval_s or 0.0)
        self._thread: ThreadPoolExecutor | None = None

    @property
    def is_automatic(self) -> bool:
        """Whether it commits by itself."""
        return self._interval_s is not None

    def commit(self, cursors: Cursors, offsets: Mapping[TopicQueue, int] | None = None) -> None:
        """Put *offsets* on record, else what is new of the cursors' positions; all or none, durable on return.

        raises QueryUnreachableError when the service is away for longer than a restart takes
        """
        chosen = self._new(cursors) if offsets is None else offsets
        if not chosen:
            return
        self._put(chosen)
        _note(cursors, chosen)

    def _put(self, offsets: Mapping[TopicQueue, int]) -> None:
        """Tried again while the service is away, as it is in a restart: to put the same twice changes nothing."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._assigned.commit(offsets)
            except (QueryUnreachableError, StoreClosedError):
                if time.monotonic() + _PAUSE_S > deadline:
                    raise
            time.sleep(_PAUSE_S)

    def commit_async(self, cursors: Cursors, offsets: Mapping[TopicQueue, int] | None = None) -> Future[None]:
        """As `commit` of this moment, without waiting for it."""
        chosen = self._new(cursors) if offsets is None else offsets
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidemark-commit")
        return self._thread.submit(self.commit, cursors, chosen)

    def commit_if_due(self, cursors: Cursors) -> None:
        """By itself, when it is time."""
        if self._interval_s is not None and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._interval_s
            self.commit_if_possible(cursors)

    def commit_if_possible(self, cursors: Cursors) -> None:
        """By itself, now. Where that is not possible, messages from the offsets on record on will come once more."""
        if self._interval_s is not None:
            with contextlib.suppress(GenerationStaleError, UnavailableError):
                offsets = self._new(cursors)
                if offsets:
                    self._assigned.commit(offsets)
                    _note(cursors, offsets)

    def close(self) -> None:
        """Wait for what is on its way."""
        if self._thread is not None:
            self._thread.shutdown()

    def _new(self, cursors: Cursors) -> dict[TopicQueue, int]:
        unfinished = self._first_unfinished()
        offsets = {
            queue: min(cursor.position, unfinished.get(queue, cursor.position))
            for queue, cursor in cursors.items()
            if isinstance(cursor.position, int)
        }
        return {queue: offset for queue, offset in offsets.items() if offset != cursors[queue].committed}


def _note(cursors: Cursors, offsets: Mapping[TopicQueue, int]) -> None:
    """These are on record."""
    for queue, offset in offsets.items():
        if queue in cursors:
            cursors[queue].committed = offset
