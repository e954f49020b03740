"""BatchJournal: records the stretches of the log that batches occupy, before they are written (docs/format.md §9)."""

from __future__ import annotations

import os
from pathlib import Path

from isal.isal_zlib import crc32

from tidemark.errors import DiskFullError, FlushFailedError
from tidemark.format.dispatch_request import U8Array
from tidemark.store.batch_journal import ENTRIES, ENTRY_SIZE, HEAD_SIZE, BatchRange, encode_entry, encode_head
from tidemark.store.storage import Storage


class BatchJournal:
    """The journal of a running writer. The appender calls `write` and `take_back`, the flusher `flush`.

    token: identifies this run, and is stored in `abort` already; start: the log's end when the run begins.
    """

    def __init__(self, path: Path, storage: Storage, *, token: bytes, start: int) -> None:
        self._storage = storage
        self._sequence = 0
        storage.unlink(path)
        self._descriptor = storage.create(path, 0)
        self._storage.pwrite(self._descriptor, encode_head(token, start) + bytes(ENTRIES * ENTRY_SIZE), 0)
        self.flush()

    def write(self, stretches: list[BatchRange]) -> None:
        """Record the stretches that will be written next.

        Raises DiskFullError or OSError. After an error, call `take_back` for them.
        """
        first = self._sequence
        self._sequence += len(stretches)
        self._put(first, [encode_entry(first + i + 1, stretch) for i, stretch in enumerate(stretches)])

    def take_back(self, count: int) -> None:
        """Remove the last *count* entries, durably, because their batches were not written.

        Raises:
            FlushFailedError: they cannot be removed; the log must stop.
        """
        self._sequence -= count
        try:
            self._put(self._sequence, [bytes(ENTRY_SIZE)] * count)
            self.flush()
        except (DiskFullError, OSError) as error:
            raise FlushFailedError(f"a failed write cannot be undone in the batch journal: {error}") from error

    def _put(self, sequence: int, entries: list[bytes]) -> None:
        first = sequence % ENTRIES
        until_edge = ENTRIES - first
        if len(entries) > until_edge:
            self._put(sequence + until_edge, entries[until_edge:])
            entries = entries[:until_edge]
        self._storage.pwrite(self._descriptor, b"".join(entries), HEAD_SIZE + first * ENTRY_SIZE)

    def flush(self) -> None:
        """Make the entries durable."""
        self._storage.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file, unless it is closed."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def stretch_of(start: int, data: U8Array) -> BatchRange:
    """Return the stretch of *data* that is to be written at *start*."""
    return BatchRange(start, start + data.size, crc32(data))
