"""The manifest as a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.archive.written import archive_of
from tidemark.archive.manifest import LeftOut, load_manifest, save_manifest
from tidemark.errors import CorruptStoreError, StoreTooNewError
from tidemark.store.storage import DiskStorage


def test_a_saved_archive_manifest_is_loaded_unchanged(tmp_path: Path) -> None:
    """The manifest keeps files, queues and the excluded messages."""
    manifest = archive_of(tmp_path, "orders", range(5))
    left = LeftOut(topic="orders", queue_id=0, first=7, next=9, reason="BODY_CRC", physical_offset=7)
    manifest = manifest.model_copy(update={"left_out": (left,)})
    save_manifest(tmp_path, manifest, DiskStorage())
    assert load_manifest(tmp_path) == manifest
    assert json.loads((tmp_path / "manifest.json").read_bytes())["version"] == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-20],
        lambda text: text.replace('"rows": 5', '"rows": "five"'),
        lambda text: text.replace('"physical_end"', '"physical_start"'),
        lambda text: text.replace('"path": "data/', '"path": "../'),
        lambda text: text.replace('"path": "data/', '"path": "/data/'),
        lambda text: "[]",
    ],
)
def test_an_invalid_archive_manifest_is_refused(tmp_path: Path, change: object) -> None:
    """The manifest is torn, has wrong types, or has paths that leave the folder."""
    archive_of(tmp_path, "orders", range(5))
    path = tmp_path / "manifest.json"
    before = path.read_text()
    path.write_text(change(before))  # type: ignore[operator]
    assert path.read_text() != before
    with pytest.raises(CorruptStoreError, match="not a valid archive manifest"):
        load_manifest(tmp_path)


def test_a_newer_archive_manifest_is_refused(tmp_path: Path) -> None:
    """A newer version may give the fields another meaning."""
    (tmp_path / "manifest.json").write_text('{"version": 2}')
    with pytest.raises(StoreTooNewError):
        load_manifest(tmp_path)
