"""Next queue offset of every (topic, queue id), and its snapshot on disk.

The appender owns the table. Numbers are dense and never used again: not after a crash (the log behind the snapshot is
scanned), not after a topic was deleted (its numbers stay in the table and in tombstones.json).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tidemark.store.storage import Storage, replace_file

from .batch import QueueKey

_VERSION = 1


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
    table: dict[str, dict[str, int]] = {}
    for key, offset in snapshot.offsets:
        table.setdefault(key.topic, {})[str(key.queue_id)] = offset
    content = {
        "version": _VERSION,
        "position": snapshot.position,
        "storeTimestamp": snapshot.store_timestamp,
        "offsetTable": table,
    }
    replace_file(storage, path, orjson.dumps(content, option=orjson.OPT_SORT_KEYS))


def load_snapshot(path: Path) -> Snapshot | None:
    """The last whole snapshot; None without one that can be read: then the log tells."""
    for candidate in (path, path.with_name(path.name + ".bak")):
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return _decode_snapshot(orjson.loads(candidate.read_bytes()))
    return None


def _decode_snapshot(content: dict[str, Any]) -> Snapshot:
    if content["version"] != _VERSION:
        raise ValueError("a version of another program")
    offsets = QueueOffsets()
    for topic, queues in content["offsetTable"].items():
        for queue_id, offset in queues.items():
            offsets.set(QueueKey(topic, int(queue_id)), int(offset))
    return Snapshot(int(content["position"]), int(content["storeTimestamp"]), offsets)
