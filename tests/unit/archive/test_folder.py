"""An archive's folder: its lock, and the removal of leftover files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.archive.written import archive_of, entry
from tidemark.archive.folder import archive_in, held_folder, part_files, publish, remove_unnamed
from tidemark.errors import ArgumentIllegalError, StoreContradictionError, StoreLockedError
from tidemark.store.lock import FolderLock
from tidemark.store.storage import DiskStorage

DISK = DiskStorage()


def hold(folder: Path, store: Path) -> None:
    with held_folder(folder, outside=store, storage=DISK):
        pass


def test_a_second_archive_run_is_refused(tmp_path: Path) -> None:
    """The second run is refused until the first one releases the lock."""
    folder = tmp_path / "archive"
    with held_folder(folder, outside=tmp_path / "store", storage=DISK):
        with pytest.raises(StoreLockedError):
            hold(folder, tmp_path / "store")
        assert archive_in(folder) is None
    hold(folder, tmp_path / "store")


def test_an_archive_locked_by_another_holder_is_refused(tmp_path: Path) -> None:
    """flock belongs to the open file."""
    lock = FolderLock(tmp_path / "lock")
    lock.require()
    with pytest.raises(StoreLockedError):
        hold(tmp_path, tmp_path / "store")
    lock.release()


@pytest.mark.parametrize("found", ["notes.txt", "data/topic=orders/day=2026-01-01/part-1.parquet"])
def test_a_folder_that_is_not_an_archive_is_refused(tmp_path: Path, found: str) -> None:
    """A folder with message files but no manifest is refused too; nothing of it is removed."""
    path = tmp_path / "archive" / found
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(StoreContradictionError, match="is not an archive"):
        hold(tmp_path / "archive", tmp_path / "store")
    assert path.exists()


def test_leftovers_of_a_run_without_a_manifest_are_accepted(tmp_path: Path) -> None:
    """The run was killed in its first step."""
    for name in ("lock", "manifest.json.tmp"):
        (tmp_path / name).touch()
    hold(tmp_path, tmp_path / "store")


def test_an_archive_inside_its_store_is_refused(tmp_path: Path) -> None:
    """Inside the store, the archive would be treated as a part of it."""
    with pytest.raises(ArgumentIllegalError, match="is inside the store"):
        hold(tmp_path / "store" / "archive", tmp_path / "store")


def test_only_files_missing_from_the_manifest_are_removed(tmp_path: Path) -> None:
    """Only files and folders of killed runs are removed."""
    manifest = archive_of(tmp_path, "orders", range(5))
    named = part_files(tmp_path)
    left = [
        tmp_path / "data" / "topic=late" / "day=2026-01-01" / "part-9.parquet",
        named[0].with_name("part-9.parquet"),
    ]
    staged = tmp_path / "staging" / "1" / "topic=late" / "day=2026-01-01" / "part-9.parquet"
    foreign = named[0].with_name("_SUCCESS")
    for path in (*left, staged, foreign):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert remove_unnamed(tmp_path, manifest) == 3
    assert part_files(tmp_path) == named
    assert foreign.exists()
    assert not (tmp_path / "staging").exists()
    assert not (tmp_path / "data" / "topic=late").exists()


def test_published_files_move_to_their_path_in_the_manifest(tmp_path: Path) -> None:
    """A file moves out of staging and keeps its relative path."""
    staging = tmp_path / "staging" / "1"
    file = entry(staging, "orders", range(5))
    [published] = publish(tmp_path, staging, [file], DISK)
    assert published.path == f"data/{file.path}"
    assert part_files(tmp_path) == [tmp_path / published.path]
    assert list(staging.rglob("*.parquet")) == []
