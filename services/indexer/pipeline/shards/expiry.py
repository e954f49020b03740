"""Expiry: one shard's files go with the log's, for the holder of the shard's lock.

The writer deletes log files; when the log's minimum has moved, queue files and index files that only know of deleted
records are of no use. `tidemark/indexer/expired-<shard>` says up to which minimum that is done, so that an epoch need
not look at every queue.
"""

from __future__ import annotations

import contextlib
import time
from threading import Lock

from tidemark.errors import DiskFullError
from tidemark.store.storage import Storage, replace_file

from ..plan import EpochPlan
from .durable_marks import Shard

_LOOK_EVERY_S = 5.0


class Expiry:
    """Looks at the log's folder now and then; acts only when its minimum has moved."""

    def __init__(self, plan: EpochPlan, number: int, shard: Shard, storage: Storage) -> None:
        self._plan = plan
        self._shard = shard
        self._storage = storage
        self._path = plan.paths.indexer / f"expired-{number}"
        self._look_at = 0.0
        self._done = 0
        with contextlib.suppress(FileNotFoundError, ValueError):
            self._done = int(self._path.read_text("ascii"))

    def look(self, lock: Lock) -> int:
        """Delete what has expired; how many files. *lock* is held while the shard's files change."""
        if time.monotonic() < self._look_at:
            return 0
        self._look_at = time.monotonic() + _LOOK_EVERY_S
        log = self._plan.open_log()
        log_min = log.min_offset
        log.close()
        if log_min <= self._done:
            return 0
        with lock:
            deleted = self._shard.expire(log_min)
        self._done = log_min
        with contextlib.suppress(DiskFullError):  # deleting is what helps then; it is only looked at once more
            replace_file(self._storage, self._path, b"%d\n" % log_min, keep_previous=False)
        return deleted
