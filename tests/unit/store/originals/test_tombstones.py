"""Tombstones of deleted topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.errors import CorruptStoreError
from tidemark.store.originals.tombstones import Tombstone, TombstonesFile, load_tombstones, save_tombstones
from tidemark.store.storage import DiskStorage

STORAGE = DiskStorage()


def test_saved_tombstones_are_loaded_unchanged(tmp_path: Path) -> None:
    """They keep their order."""
    stones = [Tombstone("a", 10, {0: 5, 1: 7}), Tombstone("b", 20, {})]
    assert load_tombstones(tmp_path / "tombstones.json") == []
    save_tombstones(tmp_path / "tombstones.json", stones, STORAGE)
    assert load_tombstones(tmp_path / "tombstones.json") == stones


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"tombstones":[{"topic":"a"}]}'])
def test_invalid_tombstones_are_damage(tmp_path: Path, content: bytes) -> None:
    """Without them, queue offsets would be reused."""
    (tmp_path / "tombstones.json").write_bytes(content)
    with pytest.raises(CorruptStoreError):
        load_tombstones(tmp_path / "tombstones.json")


def test_a_reader_sees_a_topic_deletion_once(tmp_path: Path) -> None:
    """The file is read again only after a change."""
    path = tmp_path / "tombstones.json"
    reader = TombstonesFile(path)
    assert not reader.refresh()
    save_tombstones(path, [Tombstone("a", 10, {0: 5})], STORAGE)
    assert reader.refresh()
    assert not reader.refresh()
    assert (reader.dead_end("a"), reader.dead_end("b")) == (10, 0)
