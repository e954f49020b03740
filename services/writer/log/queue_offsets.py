"""Next queue offset of every (topic, queue id), and its snapshot on disk.

The appender owns the table. Queue offsets are dense and never reused: not after a crash (the log above the snapshot is
scanned), and not after a topic was deleted (its offsets remain in the table and in tombstones.json).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidemark.store.originals.next_offsets import NextOffsets, load_next_offsets, save_next_offsets
from tidemark.store.storage import Storage

from ..batch.batch import QueueKey


class QueueOffsets:
    """The table of next queue offsets. A queue that is not in it starts at 0."""

    def __init__(self) -> None:
        self._next: dict[QueueKey, int] = {}

    def next(self, key: QueueKey) -> int:
        """Return the offset of the queue's next message."""
        return self._next.get(key, 0)

    def set(self, key: QueueKey, queue_offset: int) -> None:
        """Set the offset of the queue's next message."""
        self._next[key] = queue_offset

    def raise_to(self, key: QueueKey, queue_offset: int) -> None:
        """Set the offset of the queue's next message if that raises it."""
        if queue_offset > self._next.get(key, 0):
            self._next[key] = queue_offset

    def of_topic(self, topic: str) -> dict[int, int]:
        """Return the next offset of each queue id of *topic*."""
        return {key.queue_id: offset for key, offset in list(self._next.items()) if key.topic == topic}

    def copy(self) -> QueueOffsets:
        """Return an independent copy of the table."""
        copied = QueueOffsets()
        copied._next = dict(self._next)
        return copied

    def __iter__(self) -> Iterator[tuple[QueueKey, int]]:
        return iter(self._next.items())

    def __len__(self) -> int:
        return len(self._next)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QueueOffsets) and self._next == other._next

    __hash__ = None  # type: ignore[assignment]


class Snapshot(NamedTuple):
    """The table when the log ended at *position*. store_timestamp: of the last record below *position*."""

    position: int
    store_timestamp: int
    offsets: QueueOffsets
    record_starts: tuple[int, ...] = ()  # as in NextOffsets


def save_snapshot(path: Path, snapshot: Snapshot, storage: Storage) -> None:
    """Save the snapshot durably; the previous one is kept as `.bak`."""
    position, store_timestamp, offsets, record_starts = snapshot
    save_next_offsets(path, NextOffsets(position, store_timestamp, dict(offsets), record_starts), storage)


def load_snapshot(path: Path) -> Snapshot | None:
    """Return the last intact snapshot; None if there is none, and the offsets must be read from the log."""
    saved = load_next_offsets(path)
    if saved is None:
        return None
    offsets = QueueOffsets()
    for (topic, queue_id), offset in saved.table.items():
        offsets.set(QueueKey(topic, queue_id), offset)
    return Snapshot(saved.position, saved.store_timestamp, offsets, saved.record_starts)
