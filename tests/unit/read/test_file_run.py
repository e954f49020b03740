"""A run of files while another process deletes from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from tidemark.errors import CorruptStoreError
from tidemark.read.file_run import FileRun, Listing
from tidemark.store.mapped_file_queue import file_name

SIZE = 64


class Vanishing:
    """A folder listing in which file 0 is removed between the listing and its stat."""

    def __init__(self, entries: Any) -> None:
        self._entries = list(entries)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        for entry in self._entries:
            if entry.name == file_name(0):
                Path(entry.path).unlink()
            yield entry


def test_a_file_deleted_while_the_folder_is_listed_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the log would look empty for a moment whenever retention deletes."""
    for start in (0, 64, 128):
        (tmp_path / file_name(start)).write_bytes(b"%d" % start + bytes(SIZE - len(b"%d" % start)))
    run = FileRun(tmp_path)
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: Vanishing(scandir(folder)))
    assert run.refresh() == Listing((64, 128), SIZE)
    assert run.read(128, 3) == b"128"


def test_an_empty_file_before_another_one_is_damage(tmp_path: Path) -> None:
    """The last file may be empty while it is created; the first one gives the size of all the others."""
    for start in (0, SIZE):
        (tmp_path / file_name(start)).touch()
    with pytest.raises(CorruptStoreError):
        FileRun(tmp_path)
    (tmp_path / file_name(SIZE)).unlink()
    assert FileRun(tmp_path).known == Listing((), 0)
