"""OffsetCommitter: commits a consumer's positions, on request and at intervals."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from tidemark.client.consumer.queue_assignment import QueueAssignment
from tidemark.client.consumer.queue_cursor import Cursors
from tidemark.client.received_message import TopicQueue
from tidemark.errors import (
    GenerationStaleError,
    QueryUnreachableError,
    QueueIllegalError,
    RejectedError,
    StoreClosedError,
    TopicNotFoundError,
    UnavailableError,
)

_PATIENCE_S, _PAUSE_S = 10.0, 0.1
_log = logging.getLogger(__name__)


class OffsetCommitter:
    """Commits positions of cursors.

    interval_s        interval of automatic commits
    is_automatic      commit at these intervals and at the end; otherwise only when the program asks
    first_unfinished  returns, by queue, the lowest offset that is still being handled: a commit stays below it
    """

    def __init__(
        self,
        assigned: QueueAssignment,
        *,
        interval_s: float,
        is_automatic: bool,
        first_unfinished: Callable[[], Mapping[TopicQueue, int]],
    ) -> None:
        self._assigned = assigned
        self._interval_s = interval_s
        self.is_automatic = is_automatic
        self._first_unfinished = first_unfinished
        self._due = time.monotonic() + interval_s
        self._thread: ThreadPoolExecutor | None = None

    @contextlib.contextmanager
    def always_automatic(self) -> Iterator[None]:
        """Commit at intervals in the block even with auto_commit=False: `consume` knows which messages are handled."""
        chosen = self.is_automatic
        self.is_automatic = True
        try:
            yield
        finally:
            self.is_automatic = chosen

    def commit(self, cursors: Cursors, offsets: Mapping[TopicQueue, int] | None = None) -> None:
        """Commit *offsets*, or else the changed positions of the cursors; all or none, durable on return.

        raises QueryUnreachableError if the service is unavailable for longer than a restart takes
        """
        if offsets is not None:
            self._put_and_note(cursors, offsets)
        else:
            for part in self._of_existing_topics(self._new(cursors), self._put):
                _note(cursors, part)

    def _put_and_note(self, cursors: Cursors, offsets: Mapping[TopicQueue, int]) -> None:
        if offsets:
            self._put(offsets)
            _note(cursors, offsets)

    def _of_existing_topics(
        self, offsets: Mapping[TopicQueue, int], put: Callable[[Mapping[TopicQueue, int]], None]
    ) -> Iterator[Mapping[TopicQueue, int]]:
        """Commit *offsets* in one request, or by topic if a topic was deleted; yield the committed ones."""
        if not offsets:
            return
        try:
            put(offsets)
            yield offsets
            return
        except (TopicNotFoundError, QueueIllegalError):
            topics = sorted({queue.topic for queue in offsets})
        for topic in topics:
            part = {queue: offset for queue, offset in offsets.items() if queue.topic == topic}
            with contextlib.suppress(TopicNotFoundError, QueueIllegalError):
                put(part)
                yield part

    def _put(self, offsets: Mapping[TopicQueue, int]) -> None:
        """Commit; repeat while the service is unavailable, as in a restart: a repeated commit changes nothing."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._assigned.commit(offsets)
            except (QueryUnreachableError, StoreClosedError):
                if time.monotonic() + _PAUSE_S > deadline:
                    raise
            time.sleep(_PAUSE_S)

    def commit_async(self, cursors: Cursors, offsets: Mapping[TopicQueue, int] | None = None) -> Future[None]:
        """Start a commit of the current positions, and return a future of its completion."""
        chosen = self._new(cursors) if offsets is None else offsets
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="tidemark-commit")
        return self._thread.submit(self._put_and_note, cursors, chosen)

    def commit_if_due(self, cursors: Cursors) -> None:
        """Commit automatically if the interval has passed."""
        if self.is_automatic and time.monotonic() >= self._due:
            self._due = time.monotonic() + self._interval_s
            self.commit_if_possible(cursors)

    def commit_if_possible(self, cursors: Cursors) -> None:
        """Commit automatically, now. If that fails, messages above the committed offsets are delivered again."""
        if self.is_automatic:
            with contextlib.suppress(GenerationStaleError, UnavailableError):
                for part in self._of_existing_topics(self._new(cursors), self._assigned.commit):
                    _note(cursors, part)

    def record(self, cursors: Cursors, decided: dict[TopicQueue, int]) -> None:
        """Commit the *decided* positions and remove them from *decided*.

        If the service is unavailable, or this member must join again, they stay for the next call. A refused position
        is logged and removed: this consumer may not set the group's offsets, or the queue has no such offset.
        """
        offsets = {queue: offset for queue, offset in decided.items() if queue in cursors}
        try:
            self._record(cursors, offsets)
        except (UnavailableError, GenerationStaleError):
            return
        decided.clear()

    def _record(self, cursors: Cursors, offsets: Mapping[TopicQueue, int]) -> None:
        try:
            for part in self._of_existing_topics(offsets, self._assigned.commit):
                _note(cursors, part)
        except GenerationStaleError:
            raise
        except RejectedError as error:
            if len(offsets) > 1:  # all or none: one refused offset must not block the others
                for queue, offset in offsets.items():
                    self._record(cursors, {queue: offset})
            else:
                _log.warning("the position of %s was not committed: %s", *offsets, error)

    def close(self) -> None:
        """Wait for commits in progress."""
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
    """Note that *offsets* are committed."""
    for queue, offset in offsets.items():
        if queue in cursors:
            cursors[queue].committed = offset
