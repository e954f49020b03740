"""`tidemark/writer/tombstones.json`: topics that were deleted, one entry a topic (docs/format.md §9).

Records of the topic below a physical offset are dead: queues do not hold them, also when the topic is there again. Its
queue numbers go on where they ended. The writer owns the file; the pipeline reads it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tidemark.errors import CorruptStoreError
from tidemark.store.storage import Storage
from tidemark.store.topics import load_config, save_config


class Tombstone(NamedTuple):
    """A deleted topic: its records below *physical_offset* are dead, its numbering goes on."""

    topic: str
    physical_offset: int
    next_offsets: dict[int, int]  # by queue id


def load_tombstones(path: Path) -> list[Tombstone]:
    """All tombstones, oldest first; CorruptStoreError when the file cannot be read: numbers would be used again."""
    try:
        content = load_config(path)
        return [
            Tombstone(
                str(entry["topic"]),
                int(entry["physicalOffset"]),
                {int(queue_id): int(offset) for queue_id, offset in entry["nextOffsets"].items()},
            )
            for entry in ([] if content is None else content["tombstones"])
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptStoreError(f"{path} is no file of tombstones", path=str(path)) from error


def save_tombstones(path: Path, tombstones: list[Tombstone], storage: Storage) -> None:
    """Durable when this returns."""
    save_config(path, _content(tombstones), storage)


def encode_tombstones(tombstones: list[Tombstone]) -> bytes:
    """A file of them, for a copy of the store."""
    return orjson.dumps(_content(tombstones), option=orjson.OPT_INDENT_2)


def _content(tombstones: list[Tombstone]) -> dict[str, Any]:
    entries = [
        {
            "topic": topic,
            "physicalOffset": physical_offset,
            "nextOffsets": {str(queue_id): offset for queue_id, offset in sorted(next_offsets.items())},
        }
        for topic, physical_offset, next_offsets in tombstones
    ]
    return {"tombstones": entries}


class TombstonesFile:
    """The tombstones for a reader that asks often: read again only when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature: tuple[int, int] | None = None
        self._dead_ends: dict[str, int] = {}

    @property
    def topics(self) -> list[str]:
        """Every topic that was deleted, also those that are there again."""
        return list(self._dead_ends)

    def dead_end(self, topic: str) -> int:
        """Physical offset below which the topic's records are dead; 0 when it was never deleted."""
        return self._dead_ends.get(topic, 0)

    def refresh(self) -> bool:
        """Look at the file again; whether it has changed."""
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return False
        signature = (status.st_ino, status.st_mtime_ns)
        if signature == self._signature:
            return False
        self._dead_ends = {stone.topic: stone.physical_offset for stone in load_tombstones(self._path)}
        self._signature = signature
        return True
