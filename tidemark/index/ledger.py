"""The ledger of damage: `tidemark/indexer/ledger-<shard>.jsonl`, one JSON object per line, keyed by physical offset.

Damage is always reported, never skipped silently. Each shard appends to its own file; readers merge all files. A
damaged place that is walked again is recorded once.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import orjson

from tidemark.store.storage import Storage

_KINDS = {  # fields of every entry, with their types
    "physical_offset": (int,),
    "size": (int,),
    "reason": (str,),
    "topic": (str, type(None)),
    "queue_id": (int, type(None)),
    "queue_offset": (int, type(None)),
    "found_ms": (int,),
}


def ledger_path(folder: Path, shard: int) -> Path:
    """Return the path of one shard's ledger."""
    return folder / f"ledger-{shard}.jsonl"


def read_ledger(folder: Path) -> list[dict[str, Any]]:
    """Return all damage, ascending by physical offset, each place once.

    An invalid line, or one that a crash cut off, is ignored.
    """
    entries: dict[int, dict[str, Any]] = {}
    for path in sorted(folder.glob("ledger-*.jsonl")):
        for line in path.read_bytes().splitlines():
            entry = _entry_of(line)
            if entry is not None:
                entries.setdefault(entry["physical_offset"], entry)
    return [entries[physical_offset] for physical_offset in sorted(entries)]


def _entry_of(line: bytes) -> dict[str, Any] | None:
    """Parse a line that `Ledger.record` wrote; None for any other line."""
    try:
        entry = orjson.loads(line)
        is_entry = all(type(entry[name]) in kinds for name, kinds in _KINDS.items())
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        return None
    return entry if is_entry else None


class Ledger:
    """Writer of one shard's ledger. The caller holds the shard's lock."""

    def __init__(self, folder: Path, shard: int, storage: Storage) -> None:
        self._storage = storage
        self._path = ledger_path(folder, shard)
        self._known = {entry["physical_offset"] for entry in read_ledger(folder)}

    def record(
        self,
        *,
        physical_offset: int,
        size: int,
        reason: str,
        topic: str | None = None,
        queue_id: int | None = None,
        queue_offset: int | None = None,
    ) -> bool:
        """Record a damaged place durably; False if it is known already. size: bytes; reason: a Fault's name."""
        if physical_offset in self._known:
            return False
        entry = {
            "physical_offset": physical_offset,
            "size": size,
            "reason": reason,
            "topic": topic,
            "queue_id": queue_id,
            "queue_offset": queue_offset,
            "found_ms": time.time_ns() // 1_000_000,
        }
        self._append(orjson.dumps(entry) + b"\n")
        self._known.add(physical_offset)
        return True

    def _append(self, line: bytes) -> None:
        descriptor = self._storage.open(self._path) if self._path.exists() else self._storage.create(self._path, 0)
        try:
            end = os.fstat(descriptor).st_size
            if end and os.pread(descriptor, 1, end - 1) != b"\n":  # the last line was cut off by a crash
                line = b"\n" + line
            self._storage.pwrite(descriptor, line, end)
            self._storage.fdatasync(descriptor)
        finally:
            os.close(descriptor)
