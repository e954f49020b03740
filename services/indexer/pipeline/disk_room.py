"""Handling of a full disk: the pipeline logs the reason, waits, and resumes when there is free space again.

No data is lost: the log is committed, and derived files are a function of the log.
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
    """Return True if *error*, from one of our tasks or from Spark, means a full disk. Spark reports both as text."""
    return any(words in f"{type(error).__name__}: {error}" for words in _WORDS)


def wait_for_room(plan: EpochPlan, storage: Storage, stopping: threading.Event) -> bool:
    """Block until a file of 1 MiB can be written in the folder of the marks; False if the pipeline is stopped first."""
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
