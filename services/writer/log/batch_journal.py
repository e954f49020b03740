"""BatchJournal: tells which batches will be written, before they are (docs/format.md §9)."""

from __future__ import annotations

import os
from pathlib import Path

from isal.isal_zlib import crc32

from tidemark.format.dispatch_request import U8Array
from tidemark.store.batch_journal import ENTRIES, ENTRY_SIZE, HEAD_SIZE, Stretch, encode_entry, encode_head
from tidemark.store.storage import Storage


class BatchJournal:
    """The journal of a running writer. `write` and `forget` are the appender's, `flush` is the flusher's.

    token: of this run, in `abort` already; start: where the log ends as it begins
    """

    def __init__(self, path: Path, storage: Storage, *, token: bytes, start: int) -> None:
        self._storage = storage
        self._sequence = 0
        storage.unlink(path)
        self._descriptor = storage.create(path, 0)
        self._storage.pwrite(self._descriptor, encode_head(token, start) + bytes(ENTRIES * ENTRY_SIZE), 0)
        self.flush()

    def write(self, stretches: list[Stretch]) -> None:
        """Tell what will be written now.

        raises DiskFullError or OSError when it cannot be told: `forget` it
        """
        first = self._sequence
        self._sequence += len(stretches)
        self._put(first, [encode_entry(first + i + 1, stretch) for i, stretch in enumerate(stretches)])

    def forget(self, count: int) -> None:
        """The last *count* were not written after all; durable when this returns."""
        self._sequence -= count
        self._put(self._sequence, [bytes(ENTRY_SIZE)] * count)
        self.flush()

    def _put(self, sequence: int, entries: list[bytes]) -> None:
        first = sequence % ENTRIES
        until_edge = ENTRIES - first
        for at, part in ((first, entries[:until_edge]), (0, entries[until_edge:])):
            if part:
                self._storage.pwrite(self._descriptor, b"".join(part), HEAD_SIZE + at * ENTRY_SIZE)

    def flush(self) -> None:
        """Make it durable."""
        self._storage.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def stretch_of(start: int, data: U8Array) -> Stretch:
    """The stretch that *data*, to be written at *start*, makes."""
    return Stretch(start, start + data.size, crc32(data))
