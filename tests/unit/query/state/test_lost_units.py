"""Places that pulls skipped: kept once, bounded, and kept over a restart."""

from __future__ import annotations

from pathlib import Path

from services.indexer.query.state.lost_units import LostUnits
from tidemark.read.records import QUEUE_GAP, REMOVED, Skipped


def kept(units: LostUnits) -> list[tuple[str, int, int, str, int]]:
    return [
        (one["topic"], one["queue_id"], one["queue_offset"], one["reason"], one["message_count"]) for one in units.all()
    ]


def test_lost_units_are_stored_once_and_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "lost_units.jsonl"
    units = LostUnits(path, limit=10, may_write=lambda: True)
    for _ in range(2):
        units.note("b", 1, [Skipped(-1, 5, QUEUE_GAP, 3), Skipped(7, 9, REMOVED)])
    units.note("a", 0, [Skipped(99, 2, "LENGTH")])
    expected = [("a", 0, 2, "LENGTH", 1), ("b", 1, 5, QUEUE_GAP, 3)]
    assert kept(units) == expected
    with path.open("ab") as file:
        file.write(b'{"topic": "torn')
    assert kept(LostUnits(path, limit=10, may_write=lambda: True)) == expected


def test_lost_units_above_the_limit_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "lost_units.jsonl"
    units = LostUnits(path, limit=3, may_write=lambda: True)
    units.note("a", 0, [Skipped(99, offset, "LENGTH") for offset in range(1000)])
    assert [place[2] for place in kept(units)] == [0, 1, 2]
    assert len(path.read_bytes().splitlines()) == 3


def test_a_process_that_does_not_own_the_folder_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lost_units.jsonl"
    units = LostUnits(path, limit=3, may_write=lambda: False)
    units.note("a", 0, [Skipped(99, 1, "LENGTH")])
    assert len(kept(units)) == 1
    assert not path.exists()
