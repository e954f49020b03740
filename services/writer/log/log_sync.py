"""LogSync: syncs the end of a log together with its journal."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from tidemark.store.mapped_file_queue import MappedFileQueue

from .batch_journal import BatchJournal

_LITTLE_BYTES = 64 << 10


class LogSync:
    """The syncs of *log*, which one thread at a time asks for."""

    def __init__(self, log: MappedFileQueue) -> None:
        self._log = log
        self._beside = ThreadPoolExecutor(1, "journal-sync")

    def sync(self, journal: BatchJournal, files: Iterable[int], *, size: int) -> None:
        """Sync *journal* and the files that start at *files*, concurrently if *size*, their new bytes, is large.

        After a power cut only bytes in both count. For a small size, to wake another thread takes as long as the sync
        that it would do.

        Raises:
            FlushFailedError: one of them cannot be synced.
        """
        if size <= _LITTLE_BYTES:
            journal.flush()
            self._sync_files(files)
            return
        told = self._beside.submit(journal.flush)
        try:
            self._sync_files(files)
        finally:
            told.result()

    def _sync_files(self, files: Iterable[int]) -> None:
        for start in files:
            self._log.flush(start)

    def close(self) -> None:
        """End the thread."""
        self._beside.shutdown()
