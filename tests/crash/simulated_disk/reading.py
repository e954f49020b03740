"""The readers' view of a store: every queue pulled to its end, and key lookups, through the library's own readers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tests.crash.simulated_disk.pipeline import INDEX_ENTRIES, INDEX_SLOTS
from tidemark.read.lookup.index_reader import IndexReader
from tidemark.read.lookup.key_lookup import KeyQuery, find_by_key
from tidemark.read.pull import PulledPart, PullRequest, pull
from tidemark.read.store_reader import StoreReader

_ALL = 1 << 20


class Seen(NamedTuple):
    """One message as a reader got it."""

    queue_offset: int
    physical_offset: int
    body: bytes


class Readers:
    """Readers that are opened anew for each check."""

    def __init__(self, root: Path) -> None:
        self._store = StoreReader(root)
        self._index = IndexReader(root / "index", slots=INDEX_SLOTS, entries=INDEX_ENTRIES)
        self.watermark = self._store.watermark()
        self.topics = sorted(self._store.topics())

    def pulled(self, topic: str) -> tuple[list[Seen], int]:
        """Return all messages of queue 0, and the number of skipped records."""
        queue = self._store.queue(topic, 0)
        bounds = self._store.bounds(queue, self.watermark)
        result = pull(queue, self._store.log, bounds, PullRequest(bounds.min_offset, _ALL, _ALL))
        return seen_of(result.parts), len(result.skipped)

    def found(self, topic: str, key: str) -> list[Seen]:
        """Return all messages of the key."""
        return seen_of(find_by_key(self._store, self._index, self.watermark, KeyQuery(topic, key, limit=_ALL)).parts)

    def close(self) -> None:
        """Unmap; the rest is closed by garbage collection."""
        self._store.watermarks.close()


def seen_of(parts: list[PulledPart]) -> list[Seen]:
    return [
        Seen(
            int(message["queue_offset"]),
            int(message["physical_offset"]),
            part.records.buffer[int(message["body_at"]) :][: int(message["body_length"])].tobytes(),
        )
        for part in parts
        for message in part.messages
    ]
