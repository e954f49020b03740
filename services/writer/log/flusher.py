"""Flusher: a thread that syncs all groups written since the last sync with one fdatasync (group commit).

Groups are handed over in order, so the flushed bytes are always a prefix of the log. A failed fdatasync is never
retried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from tidemark.errors import StoreError
from tidemark.metrics.buckets import Buckets
from tidemark.store.mapped_file_queue import MappedFileQueue

from ..batch.batch import Batch
from .batch_journal import BatchJournal
from .log_sync import LogSync


class WrittenGroup(NamedTuple):
    """A group that has been written."""

    batches: list[Batch]  # answered once the group is flushed
    end: int  # the log's end with the group, exclusive
    files: list[int]  # starts of the files that hold unsynced bytes, ascending
    store_timestamp: int  # of the group's last record
    appends: int = 0  # number of batches in the group, including those that are already answered


class GroupCommits:
    """Durations, batches and bytes of group commits. The flusher's thread writes them."""

    def __init__(self) -> None:
        self.seconds = Buckets("tidemark_fdatasync_seconds")
        self.batches = Buckets("tidemark_group_commit_batches")
        self.bytes = Buckets("tidemark_group_commit_bytes")


class Flusher:
    """Syncs groups in the order of their hand-over. interval_s: pause between two syncs; None: no pause."""

    def __init__(
        self,
        log: MappedFileQueue,
        journal: BatchJournal,
        *,
        flushed_offset: int,
        on_flushed: Callable[[WrittenGroup], None],
        on_failure: Callable[[StoreError], None],
        interval_s: float | None,
    ) -> None:
        self.flushed_offset = flushed_offset
        self.groups = GroupCommits()
        self._log_sync = LogSync(log)
        self._journal = journal
        self._on_flushed = on_flushed
        self._on_failure = on_failure
        self._interval_s = interval_s
        self._handed: list[WrittenGroup] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="flusher", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def hand_over(self, written: WrittenGroup) -> None:
        """Accept a group. `on_flushed` is called with it, possibly merged with the groups that follow."""
        with self._lock:
            self._handed.append(written)
            self._changed.notify()

    def close(self) -> None:
        """Sync the accepted groups and stop the thread."""
        with self._lock:
            self._closing.set()
            self._changed.notify()
        self._thread.join()
        self._log_sync.close()

    def _run(self) -> None:
        try:
            while (written := self._take()) is not None:
                if written.files:
                    self._sync_group(written)
                self.flushed_offset = written.end
                self._on_flushed(written)
                if self._interval_s is not None:
                    self._closing.wait(self._interval_s)  # a hand-over does not end this pause
        except StoreError as error:
            self._on_failure(error)

    def _sync_group(self, written: WrittenGroup) -> None:
        size = written.end - self.flushed_offset
        began = time.perf_counter()
        self._log_sync.sync(self._journal, written.files, size=size)
        self.groups.seconds.observe(time.perf_counter() - began)
        self.groups.batches.observe(written.appends)
        self.groups.bytes.observe(size)

    def _take(self) -> WrittenGroup | None:
        """Return all accepted groups, merged into one; None after `close`."""
        with self._lock:
            self._changed.wait_for(lambda: self._handed or self._closing.is_set())
            handed, self._handed = self._handed, []
        if not handed:
            return None
        return WrittenGroup(
            batches=[batch for written in handed for batch in written.batches],
            end=handed[-1].end,
            files=sorted({start for written in handed for start in written.files}),
            store_timestamp=handed[-1].store_timestamp,
            appends=sum(written.appends for written in handed),
        )
