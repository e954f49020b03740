"""The ledger of damage: `tidemark/indexer/ledger-<shard>.jsonl`, one JSON object per line, keyed by physical offset.

Damage is always reported, never skipped silently. Each shard appends to its own file; readers merge all files. A
damaged place that is walked again is recorded once.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import orjson

from tidemark.replication.repairs import Repair, read_repairs
from tidemark.store.json_lines import append_line
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
    """Return all damage that was not repaired since, ascending by physical offset, each place once.

    An invalid line, or one that a crash cut off, is ignored.
    """
    repairs = read_repairs(folder.parent / "replication")
    entries: dict[int, dict[str, Any]] = {}
    for path in sorted(folder.glob("ledger-*.jsonl")):
        for line in path.read_bytes().splitlines():
            entry = _entry_of(line)
            if entry is not None and not _is_repaired(entry, repairs):
                entries.setdefault(entry["physical_offset"], entry)
    return [entries[physical_offset] for physical_offset in sorted(entries)]


def _is_repaired(entry: dict[str, Any], repairs: list[Repair]) -> bool:
    begin, end = entry["physical_offset"], entry["physical_offset"] + max(1, entry["size"])
    return any(
        repair.repaired_ms >= entry["found_ms"]
        and repair.physical_offset < end
        and begin < repair.physical_offset + repair.size
        for repair in repairs
    )


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
        append_line(self._path, entry, self._storage)
        self._known.add(physical_offset)
        return True
