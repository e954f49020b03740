"""Repairs of the log from other members: `repairs.jsonl` in a member's folder, and the time of the last comparison."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import orjson

from tidemark.store.json_lines import append_line
from tidemark.store.storage import Storage

_REPAIRS, _COMPARED = "repairs.jsonl", "compared"


class Repair(NamedTuple):
    """Bytes that were replaced. source: name of the member that had the right ones; repaired_ms: epoch milliseconds."""

    physical_offset: int
    size: int
    source: str
    repaired_ms: int


def note_repair(folder: Path, repair: Repair, storage: Storage) -> None:
    """Note a repair durably. Raises OSError."""
    append_line(folder / _REPAIRS, repair._asdict(), storage)


def read_repairs(folder: Path) -> list[Repair]:
    """Return all repairs, in their order. A line that a crash cut off is ignored."""
    try:
        lines = (folder / _REPAIRS).read_bytes().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [repair for line in lines if (repair := _repair_of(line)) is not None]


def _repair_of(line: bytes) -> Repair | None:
    try:
        return Repair(**orjson.loads(line))
    except (orjson.JSONDecodeError, TypeError):
        return None


def note_comparison(folder: Path, time_s: float) -> None:
    """Note the time, in epoch seconds, at which the whole log was compared. Raises OSError."""
    (folder / _COMPARED).write_text(f"{time_s:.0f}\n")


def last_comparison_s(folder: Path) -> float:
    """Return that time; 0 if the log was never compared, or if the clock was set back since."""
    try:
        noted = float((folder / _COMPARED).read_text())
    except (FileNotFoundError, ValueError):
        return 0.0
    return noted if noted <= time.time() else 0.0
