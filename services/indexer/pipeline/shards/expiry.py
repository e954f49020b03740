"""Expiry: deletes one shard's files after the log's files have expired. The caller holds the shard's lock.

The writer deletes log files. When the log's minimum offset has moved, queue files and index files that refer only to
deleted records are useless. `tidemark/indexer/expired-<shard>` holds the minimum up to which they are deleted, so that
an epoch need not look at every queue.
"""

from __future__ import annotations

import contextlib
import time
from threading import Lock

from tidemark.errors import DiskFullError
from tidemark.store.storage import Storage, replace_file

from ..plan import EpochPlan
from .shard import Shard

_LOOK_EVERY_S = 5.0


class Expiry:
    """Periodic check of the log's minimum offset, which deletes expired files when it has moved."""

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
        """Delete expired files and return how many. *lock* is held while the shard's files change."""
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
        with contextlib.suppress(DiskFullError):  # the deletion frees space; without the file it is only repeated
            replace_file(self._storage, self._path, b"%d\n" % log_min, keep_previous=False)
        return deleted
