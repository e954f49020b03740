"""`tidemark/writer/tombstones.json`: deleted topics, one entry per topic (docs/format.md §9).

Records of the topic below a physical offset are dead: queues do not contain them, even if the topic is created again.
Its queue offsets then continue where they ended. The writer owns the file; the pipeline reads it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tidemark.errors import CorruptStoreError
from tidemark.store.originals.checked_copy import FileRules, read_checked
from tidemark.store.originals.topics import load_config, save_config
from tidemark.store.storage import Storage


class Tombstone(NamedTuple):
    """A deleted topic: its records below *physical_offset* are dead, and its queue offsets continue."""

    topic: str
    physical_offset: int
    next_offsets: dict[int, int]  # by queue id

    def next_offset(self, queue_id: int) -> int:
        """Return the queue's next offset after the deletion; 0 for a queue without messages."""
        return self.next_offsets.get(queue_id, 0)


def load_tombstones(path: Path) -> list[Tombstone]:
    """Return all tombstones, oldest first.

    Raises CorruptStoreError if the file cannot be read: without it, queue offsets would be assigned twice.
    """
    try:
        choice = read_checked(path, TOMBSTONES_FORM)
        if choice.has_copy:
            return [] if choice.data is None else _parse(choice.data)
        content = load_config(path)  # a version without copies wrote it: its `.bak` replaces a torn file
        return [] if content is None else _decode(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptStoreError(f"{path} is not a list of tombstones", path=str(path)) from error


def _parse(data: bytes) -> list[Tombstone]:
    return _decode(orjson.loads(data))


def _decode(content: dict[str, Any]) -> list[Tombstone]:
    return [
        Tombstone(
            str(entry["topic"]),
            int(entry["physicalOffset"]),
            {int(queue_id): int(offset) for queue_id, offset in entry["nextOffsets"].items()},
        )
        for entry in content["tombstones"]
    ]


def _version(tombstones: list[Tombstone]) -> tuple[int, ...]:
    """Return a version: topics are only added, and their offsets only grow, except when recovery lowers them."""
    return len(tombstones), sum(stone.physical_offset for stone in tombstones)


TOMBSTONES_FORM = FileRules(_parse, _version)


def save_tombstones(path: Path, tombstones: list[Tombstone], storage: Storage) -> None:
    """Write all tombstones and their checked copy, durably."""
    save_config(path, _content(tombstones), storage)


def encode_tombstones(tombstones: list[Tombstone]) -> bytes:
    """Encode a file of tombstones, for a copy of the store."""
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


_Signature = tuple[int, int, int]


class TombstonesFile:
    """The tombstones by topic for a frequent reader, which loads the file again only after a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.fspath(path)  # a Path would be converted for each `stat`
        self._known: tuple[_Signature | None, Mapping[str, Tombstone]] = (None, {})

    @property
    def topics(self) -> list[str]:
        """All deleted topics, including topics that were created again, at the last read."""
        return list(self._known[1])

    def dead_end(self, topic: str) -> int:
        """Return the offset below which the topic's records are dead, at the last read; 0 without a tombstone."""
        stone = self._known[1].get(topic)
        return 0 if stone is None else stone.physical_offset

    def refresh(self) -> bool:
        """Read the file again if it has changed; return True if its content has changed."""
        known = self._known[1]
        current = self.current()
        return current is not known and current != known

    def current(self) -> Mapping[str, Tombstone]:
        """Return the current tombstones by topic. The mapping is shared: do not change it.

        Thread-safe: each call returns the content that it has compared with the file itself.
        """
        try:
            status = os.stat(self._name)
            signature = (status.st_ino, status.st_mtime_ns, status.st_size)
        except FileNotFoundError:  # its checked copy may exist
            signature = (0, 0, 0)
        seen, stones = self._known
        if signature != seen:
            stones = {stone.topic: stone for stone in load_tombstones(self._path)}
            self._known = signature, stones
        return stones
