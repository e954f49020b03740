"""Keeper: the chores beside the appends, in one thread, so that no append waits for them.

It prepares the next file, makes the committed offset durable while it moves, and saves the queue offsets at each roll.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import structlog

from tidemark.errors import FlushFailedError, StoreError, UnavailableError
from tidemark.store.storage import Storage

from .queue_offsets import Snapshot, save_snapshot
from .segments import Segments, as_unavailable

log = structlog.get_logger()


class Keeper:
    """Told what to do by the appender and the flusher; does nothing, and sleeps, while nothing is appended."""

    def __init__(
        self,
        segments: Segments,
        make_committed_durable: Callable[[], None],
        storage: Storage,
        snapshot_path: Path,
        *,
        interval_s: float,
        flushed_offset: Callable[[], int],
        on_failure: Callable[[StoreError], None],
    ) -> None:
        self._segments = segments
        self._make_committed_durable = make_committed_durable
        self._storage = storage
        self._snapshot_path = snapshot_path
        self._interval_s = interval_s
        self._flushed_offset = flushed_offset
        self._on_failure = on_failure
        self._changed = threading.Condition()
        self._moved = False  # the committed offset is ahead of what is durable of it
        self._wanted: int | None = None  # start of the file to prepare
        self._asked: int | None = None
        self._snapshot: Snapshot | None = None  # of the last roll, to be saved once it is flushed
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def committed(self) -> None:
        """The committed offset has moved."""
        if not self._moved:
            with self._changed:
                self._moved = True
                self._changed.notify()

    def prepare(self, start: int) -> None:
        """The file that starts at *start* is needed soon. Asked for once: the appender makes it itself if it must."""
        if start != self._asked:
            with self._changed:
                self._asked = self._wanted = start
                self._changed.notify()

    def rolled(self, snapshot: Snapshot) -> None:
        """The log has gone on to its next file."""
        with self._changed:
            self._snapshot = snapshot
            self._changed.notify()

    def close(self) -> None:
        """End, leaving chores undone: a stop does its own."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closing:
                with self._changed:
                    self._changed.wait_for(lambda: self._closing or self._moved or self._has_urgent())
                self._do_urgent()
                if self._moved:
                    self._moved = False
                    self._make_committed_durable()
                    with self._changed:  # so it is at most an interval behind, and no more often
                        self._changed.wait_for(lambda: self._closing or self._has_urgent(), self._interval_s)
        except FlushFailedError as error:
            self._on_failure(error)

    def _has_urgent(self) -> bool:
        snapshot = self._snapshot
        due = snapshot is not None and snapshot.position <= self._flushed_offset()
        return due or self._wanted is not None

    def _do_urgent(self) -> None:
        with self._changed:
            wanted, self._wanted = self._wanted, None
            snapshot = self._snapshot
            if snapshot is not None and snapshot.position <= self._flushed_offset():
                self._snapshot = None
            else:
                snapshot = None
        if wanted is not None:
            self._try("next_file_not_prepared", lambda: self._segments.ensure(wanted))
        if snapshot is not None:
            self._make_committed_durable()
            self._try("snapshot_not_saved", lambda: save_snapshot(self._snapshot_path, snapshot, self._storage))

    def _try(self, event: str, chore: Callable[[], None]) -> None:
        """A chore may fail for lack of space: it is done later, by others, and the appends tell their callers."""
        try:
            chore()
        except FlushFailedError:
            raise
        except UnavailableError as error:
            log.warning(event, error=error.message)
        except OSError as error:
            log.warning(event, error=as_unavailable(error).message)
