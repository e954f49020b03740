"""The ledger of damage."""

from __future__ import annotations

from pathlib import Path

from tidemark.index.ledger import Ledger, ledger_path, read_ledger
from tidemark.store.storage import DiskStorage


def test_the_same_damage_is_recorded_once_by_all_shards(tmp_path: Path) -> None:
    """Rebuilds and other shards read the same damage again."""
    first = Ledger(tmp_path, 0, DiskStorage())
    assert first.record(physical_offset=500, size=100, reason="MAGIC")
    assert not first.record(physical_offset=500, size=100, reason="MAGIC")
    assert not Ledger(tmp_path, 1, DiskStorage()).record(physical_offset=500, size=100, reason="MAGIC")
    assert [(entry["physical_offset"], entry["size"], entry["reason"]) for entry in read_ledger(tmp_path)] == [
        (500, 100, "MAGIC")
    ]


def test_ledger_entries_of_all_shards_are_in_physical_order(tmp_path: Path) -> None:
    """Readers see one ledger."""
    Ledger(tmp_path, 1, DiskStorage()).record(physical_offset=9, size=1, reason="MAGIC")
    Ledger(tmp_path, 0, DiskStorage()).record(
        physical_offset=5, size=1, reason="BODY_CRC", topic="t", queue_id=3, queue_offset=8
    )
    entries = read_ledger(tmp_path)
    assert [entry["physical_offset"] for entry in entries] == [5, 9]
    assert (entries[0]["topic"], entries[0]["queue_id"], entries[0]["queue_offset"]) == ("t", 3, 8)


def test_a_torn_ledger_line_does_not_damage_the_next(tmp_path: Path) -> None:
    """The torn line is skipped, and the next entry starts on a new line."""
    Ledger(tmp_path, 0, DiskStorage()).record(physical_offset=5, size=1, reason="MAGIC")
    path = ledger_path(tmp_path, 0)
    path.write_bytes(path.read_bytes() + b'{"physical_offset": 7, "si')
    Ledger(tmp_path, 0, DiskStorage()).record(physical_offset=9, size=1, reason="MAGIC")
    assert [entry["physical_offset"] for entry in read_ledger(tmp_path)] == [5, 9]


def test_invalid_ledger_lines_are_skipped(tmp_path: Path) -> None:
    """The lines are other JSON: readers need an entry's position, and metrics its reason."""
    Ledger(tmp_path, 0, DiskStorage()).record(physical_offset=5, size=1, reason="MAGIC")
    path = ledger_path(tmp_path, 0)
    junk = b'7\n[]\nnull\n{}\n{"physical_offset": "5", "size": 1, "reason": "MAGIC"}\n{"physical_offset": 6}\n'
    path.write_bytes(junk + path.read_bytes() + junk)
    assert [entry["physical_offset"] for entry in read_ledger(tmp_path)] == [5]
