"""Next queue offset of every (topic, queue id), and its snapshot on disk.

The appender owns the table. Numbers are dense and never used again: not after a crash (the log behind the snapshot is
scanned), not after a topic was deleted (its numbers stay in the table and in tombstones.json).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidemark.store.originals.next_offsets import NextOffsets, load_next_offsets, save_next_offsets
from tidemark.store.storage import Storage

from ..batch.batch import QueueKey


class QueueOffsets:
    """The table. A queue that is not in it starts at 0."""

    def __init__(self) -> None:
        self._next: dict[QueueKey, int] = {}

    def next(self, key: QueueKey) -> int:
        """Offset of the queue's next message."""
        return self._next.get(key, 0)

    def set(self, key: QueueKey, queue_offset: int) -> None:
        """Let the queue go on at *queue_offset*."""
        self._next[key] = queue_offset

    def raise_to(self, key: QueueKey, queue_offset: int) -> None:
        """The same, never backwards."""
        if queue_offset > self._next.get(key, 0):
            self._next[key] = queue_offset

    def of_topic(self, topic: str) -> dict[int, int]:
        """Queue id → next offset."""
        return {key.queue_id: offset for key, offset in list(self._next.items()) if key.topic == topic}

    def copy(self) -> QueueOffsets:
        """A table of its own with the same numbers."""
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
    """The table as it was when the log ended at *position*. store_timestamp: of the last record below it."""

    position: int
    store_timestamp: int
    offsets: QueueOffsets


def save_snapshot(path: Path, snapshot: Snapshot, storage: Storage) -> None:
    """Durable when this returns; the previous one stays as `.bak`."""
    save_next_offsets(path, NextOffsets(snapshot.position, snapshot.store_timestamp, dict(snapshot.offsets)), storage)


def load_snapshot(path: Path) -> Snapshot | None:
    """The last whole snapshot; None without one that can be read: then the log tells."""
    saved = load_next_offsets(path)
    if saved is None:
        return None
    offsets = QueueOffsets()
    for (topic, queue_id), offset in saved.table.items():
        offsets.set(QueueKey(topic, queue_id), offset)
    return Snapshot(saved.position, saved.store_timestamp, offsets)
