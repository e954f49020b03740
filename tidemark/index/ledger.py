"""The ledger of damage: `tidemark/indexer/ledger-<shard>.jsonl`, one JSON object a line, keyed by physical offset.

Damage is told, never skipped in silence. Each shard appends to a file of its own; readers take all files together. A
place that is walked again is told once.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import orjson

from tidemark.store.storage import Storage

_KINDS = {  # what every entry has, and readers go by
    "physical_offset": (int,),
    "size": (int,),
    "reason": (str,),
    "topic": (str, type(None)),
    "queue_id": (int, type(None)),
    "queue_offset": (int, type(None)),
    "found_ms": (int,),
}


def ledger_path(folder: Path, shard: int) -> Path:
    """The file of one shard."""
    return folder / f"ledger-{shard}.jsonl"


def read_ledger(folder: Path) -> list[dict[str, Any]]:
    """All damage, ascending by physical offset, each place once.

    A line that is no entry, or was cut off by a crash, does not count.
    """
    entries: dict[int, dict[str, Any]] = {}
    for path in sorted(folder.glob("ledger-*.jsonl")):
        for line in path.read_bytes().splitlines():
            entry = _entry_of(line)
            if entry is not None:
                entries.setdefault(entry["physical_offset"], entry)
    return [entries[physical_offset] for physical_offset in sorted(entries)]


def _entry_of(line: bytes) -> dict[str, Any] | None:
    """What `Ledger.record` has written; None where it is something else."""
    try:
        entry = orjson.loads(line)
        is_entry = all(type(entry[name]) in kinds for name, kinds in _KINDS.items())
    except (orjson.JSONDecodeError, KeyError, TypeError, IndexError):
        return None
    return entry if is_entry else None


class Ledger:
    """One shard's ledger, for the holder of the shard's lock."""

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
        """Tell one damaged place, durably; False when it was told before. size: bytes; reason: a Fault's name."""
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
