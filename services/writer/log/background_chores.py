"""BackgroundChores: background work in a thread of its own, so that no append waits for it.

It prepares the next file, makes the committed offset durable while it moves, and saves the queue offsets at times.
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


class BackgroundChores:
    """The thread for background work. The appender and the flusher give it work; without appends it sleeps."""

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
        self._moved = False  # the committed offset is ahead of its durable copy
        self._wanted: int | None = None  # start of the file to prepare
        self._asked: int | None = None
        self._snapshot: Snapshot | None = None  # of the last roll; saved once the log is flushed up to it
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="background-chores", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def committed(self) -> None:
        """Wake the thread because the committed offset has moved."""
        if not self._moved:
            with self._changed:
                self._moved = True
                self._changed.notify()

    def prepare(self, start: int) -> None:
        """Create the file that starts at *start* soon. This is tried once: the appender creates a missing file."""
        if start != self._asked:
            with self._changed:
                self._asked = self._wanted = start
                self._changed.notify()

    def save(self, snapshot: Snapshot) -> None:
        """Save *snapshot* once the log is flushed up to it."""
        with self._changed:
            self._snapshot = snapshot
            self._changed.notify()

    def close(self) -> None:
        """Stop the thread without finishing its work: the stop of the writer saves everything itself."""
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
                    with self._changed:  # sync at most once per interval
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
        """Run *chore* and log a failure, such as a full disk. Later appends do the work or report the failure."""
        try:
            chore()
        except FlushFailedError:
            raise
        except UnavailableError as error:
            log.warning(event, error=error.message)
        except OSError as error:
            log.warning(event, error=as_unavailable(error).message)
