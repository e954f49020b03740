"""RecentBatches: the recently appended batches, by topic, first UNIQ_KEY and reconsume times, to recognise repeats.

An entry only holds the batch's location; `duplicate_search` compares the batch with the bytes on disk. After a restart
the older part of the window is rebuilt from the log's tail as a sorted array, without an object for each message.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidemark.format.dispatch_request import RequestArray, U8Array
from tidemark.format.unique_keys import Hashes, hash_unique_key, hash_unique_keys

from ..batch.batch import Batch


class Earlier(NamedTuple):
    """The location of a batch with the same key. messages: its number of messages, None if found in the log's tail."""

    physical_offset: int
    messages: int | None


class TailKeys:
    """UNIQ_KEYs of the log's last records, collected by recovery as hashes. The caller must check the record's key."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[tuple[Hashes, NDArray[np.int64]]] = []
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._physical_offsets: NDArray[np.int64] = np.empty(0, np.int64)

    def add(self, buffer: U8Array, rows: RequestArray) -> None:
        """Add the keys of *rows*, which follow the rows added before. Their key positions are indexes in *buffer*."""
        if self._max_bytes == 0:
            return
        hashes, physical_offsets = hash_unique_keys(buffer, rows)
        if hashes.size == 0:
            return
        self._parts.append((hashes, physical_offsets))
        oldest = int(rows["physical_offset"][-1]) - self._max_bytes
        while self._parts[0][1][-1] < oldest:
            self._parts.pop(0)

    def close(self) -> None:
        """Make the keys searchable, after all are added."""
        if self._parts:
            hashes = np.concatenate([part[0] for part in self._parts])
            physical_offsets = np.concatenate([part[1] for part in self._parts])
            order = np.argsort(hashes)
            self._hashes, self._physical_offsets = hashes[order], physical_offsets[order]
            self._parts = []

    def find(self, unique_key: bytes) -> list[int]:
        """Return the physical offsets of records that may have this key, ascending."""
        wanted = np.uint64(hash_unique_key(unique_key))
        low, high = (np.searchsorted(self._hashes, wanted, side) for side in ("left", "right"))
        return sorted(map(int, self._physical_offsets[low:high]))

    def __len__(self) -> int:
        return self._hashes.size


class RecentBatches:
    """The last *limit* keyed batches. Until *limit* batches were appended, also the keys of the log's tail."""

    def __init__(self, limit: int, tail: TailKeys) -> None:
        self._limit = limit
        # Plain tuples of atomic values: the garbage collector untracks them, which it never does for an Earlier.
        self._entries: OrderedDict[tuple[str, str, bytes, int], tuple[int, int]] = OrderedDict()
        self._tail: TailKeys | None = tail if limit else None
        self._added = 0

    def add(self, batch: Batch, physical_offset: int) -> None:
        """Record that *batch* is stored at *physical_offset*."""
        if not batch.unique_key or not self._limit:
            return
        self._entries[batch.repeat_key] = (physical_offset, batch.count)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)
        self._added += 1
        if self._added >= self._limit:
            self._tail = None  # all its keys are older than the window

    def forget(self, batch: Batch) -> None:
        """Remove *batch*, whose write failed."""
        self._entries.pop(batch.repeat_key, None)

    def find(self, batch: Batch) -> list[Earlier]:
        """Return the possible locations of a batch with this key. Without a message count, the record's key decides."""
        if not batch.unique_key:
            return []
        entry = self._entries.get(batch.repeat_key)
        if entry is not None:
            return [Earlier(*entry)]
        if self._tail is None or len(self._tail) == 0:
            return []
        return [Earlier(offset, None) for offset in self._tail.find(batch.unique_key)]
