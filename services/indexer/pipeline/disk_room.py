"""A full disk: the pipeline waits, unhealthy and saying why, and goes on by itself when there is room again.

Nothing is lost by that: the log is committed, and what is built is a function of it.
"""

from __future__ import annotations

import contextlib
import os
import threading

from tidemark.errors import DiskFullError
from tidemark.store.storage import Storage

from .plan import EpochPlan

_ROOM_BYTES = 1 << 20
_LOOK_EVERY_S = 1.0
_WORDS = (DiskFullError.__name__, "No space left on device", "Disk quota exceeded")


def is_disk_full(error: Exception) -> bool:
    """Whether a failure, a task's of ours or Spark's own, says that the disk is full. Spark reports both as text."""
    return any(words in f"{type(error).__name__}: {error}" for words in _WORDS)


def wait_for_room(plan: EpochPlan, storage: Storage, stopping: threading.Event) -> bool:
    """Until a file of a megabyte can be written beside the marks; False when the pipeline is stopped meanwhile."""
    while not stopping.wait(_LOOK_EVERY_S):
        with contextlib.suppress(DiskFullError, OSError):
            _write_and_remove(plan, storage)
            return True
    return False


def _write_and_remove(plan: EpochPlan, storage: Storage) -> None:
    path = plan.paths.indexer / "room"
    storage.unlink(path)
    descriptor = storage.create(path, 0)
    try:
        storage.pwrite(descriptor, bytes(_ROOM_BYTES), 0)
    finally:
        os.close(descriptor)
        storage.unlink(path)
