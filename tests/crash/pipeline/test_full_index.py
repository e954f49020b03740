"""A new file of the key index on a full disk."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from tests.crash.small_disk import fill, small_disk
from tests.unit.index.test_key_index import open_index, walk
from tidemark.errors import DiskFullError
from tidemark.index.key_index import index_files
from tidemark.index.part_keys import hash_rows

pytestmark = pytest.mark.crash


def append(folder: Path) -> None:
    buffer, rows, _ = walk(25)
    open_index(folder).append(hash_rows(buffer, rows))


def append_until_full(folder: Path) -> None:
    with pytest.raises(DiskFullError):
        append(folder)


def test_a_new_index_file_on_a_full_disk_is_refused(tmp_path: Path) -> None:
    """Its process does not end, although a mapped hole of a full tmpfs cannot be read, and no file is left."""
    with small_disk(tmp_path / "disk", "1m") as disk:
        folder = disk / "index"
        folder.mkdir()
        filler = disk / "filler"
        fill(filler)
        process = multiprocessing.get_context("spawn").Process(target=append_until_full, args=(folder,))
        process.start()
        process.join(60)
        assert process.exitcode == 0
        assert index_files(folder) == []
        filler.unlink()
        append(folder)
        assert len(index_files(folder)) == 2
