"""A task that has lost its shards changes no name in the store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from services.indexer.pipeline.shards.fenced_storage import FencedStorage
from tidemark.errors import StoreLockedError
from tidemark.store.storage import DiskStorage


def refuse() -> None:
    raise StoreLockedError("another task has taken over")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        lambda storage, folder, _: storage.create(folder / "new", 10),
        lambda storage, folder, _: storage.create(folder / "there", 10),
        lambda storage, folder, _: storage.create_unsynced(folder / "new", 10),
        lambda storage, folder, _: storage.rename(folder / "there", folder / "new"),
        lambda storage, folder, _: storage.unlink(folder / "there"),
        lambda storage, _, descriptor: storage.truncate(descriptor, 10),
    ],
)
def test_a_late_change_is_refused_and_leaves_everything_as_it_was(
    tmp_path: Path, change: Callable[[FencedStorage, Path, int], object]
) -> None:
    (tmp_path / "there").write_bytes(b"x" * 100)
    with (tmp_path / "there").open("r+b") as there, pytest.raises(StoreLockedError):
        change(FencedStorage(DiskStorage(), refuse), tmp_path, there.fileno())
    assert names(tmp_path) == ["there"]
    assert (tmp_path / "there").stat().st_size == 100


def test_the_holder_of_the_lease_works_as_without_a_fence(tmp_path: Path) -> None:
    storage = FencedStorage(DiskStorage(), lambda: None)
    descriptor = storage.create(tmp_path / "a", 10)
    storage.pwrite(descriptor, b"abc", 7)
    storage.truncate(descriptor, 9)
    storage.rename(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == bytes(7) + b"ab"
    with pytest.raises(FileExistsError):
        storage.create(tmp_path / "b", 10)
    storage.unlink(tmp_path / "b")
    assert names(tmp_path) == []
    os.close(descriptor)
