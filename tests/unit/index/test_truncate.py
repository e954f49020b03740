"""Removal of units whose records are no longer in the log."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.unit.index.test_build import content, requests, simple
from tidemark.index.build import BatchConsumeQueueBuilder
from tidemark.index.truncate import truncate_queue
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

ROWS = [(100 * i, i) for i in range(25)]


@pytest.mark.parametrize("keep", range(26))
def test_a_truncated_queue_equals_a_rebuild(tmp_path: Path, keep: int) -> None:
    """The log is cut at every unit, including the edges of files."""
    simple(tmp_path / "cut").build(requests(*ROWS))
    files = MappedFileQueue(tmp_path / "cut", 200, DiskStorage())
    assert truncate_queue(files, 100 * keep, batch=False) == 25 - keep
    (tmp_path / "built").mkdir()
    if keep:
        simple(tmp_path / "built").build(requests(*ROWS[:keep]))
    assert content(tmp_path / "cut") == content(tmp_path / "built")


@pytest.mark.parametrize("keep", range(10))
def test_a_truncated_batch_queue_equals_a_rebuild(tmp_path: Path, keep: int) -> None:
    """The units have 46 bytes, two a file."""
    for folder, rows in (("cut", ROWS[:9]), ("built", ROWS[:keep])):
        (tmp_path / folder).mkdir()
        files = MappedFileQueue(tmp_path / folder, 92, DiskStorage())
        if rows:
            BatchConsumeQueueBuilder(files, mark=0).build(requests(*rows))
        if folder == "cut":
            truncate_queue(files, 100 * keep, batch=True)
    assert content(tmp_path / "cut") == content(tmp_path / "built")


def test_truncating_an_empty_folder_does_nothing(tmp_path: Path) -> None:
    assert truncate_queue(MappedFileQueue(tmp_path, 200, DiskStorage()), 0, batch=False) == 0


@pytest.mark.parametrize("hole", [(0, 40), (60, 100), (100, 180)])
def test_truncation_removes_units_after_a_hole(tmp_path: Path, hole: tuple[int, int]) -> None:
    """After a power cut pages may be missing between existing units: no unit of a cut record may stay after them."""
    simple(tmp_path / "cut").build(requests(*ROWS))
    files = MappedFileQueue(tmp_path / "cut", 200, DiskStorage())
    files.zero(400 + hole[0], 400 + hole[1])
    truncate_queue(files, 2100, batch=False)
    kept = content(tmp_path / "cut").get("400", bytes(200))
    assert all(int.from_bytes(kept[at : at + 8], "big") < 2100 for at in range(0, 200, 20))


def test_truncation_deletes_a_queue_file_without_units(tmp_path: Path) -> None:
    """It was created for a unit that never reached the disk."""
    simple(tmp_path).build(requests(*ROWS[:10]))
    files = MappedFileQueue(tmp_path, 200, DiskStorage())
    files.create_file(200)
    truncate_queue(files, 5000, batch=False)
    assert files.starts == [0]


def test_truncation_removes_pre_blank_units_before_a_cut_unit(tmp_path: Path) -> None:
    """Only the next record reveals a hole: without it a rebuild creates neither blank units nor a file for them."""
    for folder, rows in (("cut", [(0, 0), (2000, 13)]), ("built", [(0, 0)]), ("head", [(2000, 13)])):
        simple(tmp_path / folder).build(requests(*rows))
    for folder in ("cut", "head"):
        truncate_queue(MappedFileQueue(tmp_path / folder, 200, DiskStorage()), 1000, batch=False)
    assert content(tmp_path / "cut") == content(tmp_path / "built")
    assert content(tmp_path / "head") == {}


def test_truncation_does_not_read_holes_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hole of six megabytes follows a few units; a unit far after it is still removed."""
    size = 6_000_000
    simple(tmp_path / "cut", file_size=size).build(requests(*ROWS))
    files = MappedFileQueue(tmp_path / "cut", size, DiskStorage())
    files.write(5_000_000, b"x" * 20)
    looked_at: list[int] = []
    pread = os.pread

    def told_pread(descriptor: int, length: int, at: int) -> bytes:
        looked_at.append(length)
        return pread(descriptor, length, at)

    monkeypatch.setattr(os, "pread", told_pread)
    truncate_queue(files, 1000, batch=False)
    assert sum(looked_at) < 1_000_000
    monkeypatch.undo()
    whole = (tmp_path / "cut" / f"{0:020d}").read_bytes()
    assert len(whole) == size
    assert whole[200:] == bytes(size - 200)
    assert whole[180:200] != bytes(20)
