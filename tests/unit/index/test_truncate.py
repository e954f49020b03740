"""Dropping units of records that the log does not hold any more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.index.test_build import content, requests, simple
from tidemark.index.build import BatchConsumeQueueBuilder
from tidemark.index.truncate import truncate_queue
from tidemark.store.mapped_file_queue import MappedFileQueue
from tidemark.store.storage import DiskStorage

ROWS = [(100 * i, i) for i in range(25)]


@pytest.mark.parametrize("keep", range(26))
def test_what_is_left_of_a_queue_equals_a_rebuild(tmp_path: Path, keep: int) -> None:
    """Cut at every unit, the edges of files among them."""
    simple(tmp_path / "cut").build(requests(*ROWS))
    files = MappedFileQueue(tmp_path / "cut", 200, DiskStorage())
    assert truncate_queue(files, 100 * keep, batch=False) == 25 - keep
    (tmp_path / "built").mkdir()
    if keep:
        simple(tmp_path / "built").build(requests(*ROWS[:keep]))
    assert content(tmp_path / "cut") == content(tmp_path / "built")


@pytest.mark.parametrize("keep", range(10))
def test_what_is_left_of_a_batch_queue_equals_a_rebuild(tmp_path: Path, keep: int) -> None:
    """The same for 46-byte units, two a file."""
    for folder, rows in (("cut", ROWS[:9]), ("built", ROWS[:keep])):
        (tmp_path / folder).mkdir()
        files = MappedFileQueue(tmp_path / folder, 92, DiskStorage())
        if rows:
            BatchConsumeQueueBuilder(files, mark=0).build(requests(*rows))
        if folder == "cut":
            truncate_queue(files, 100 * keep, batch=True)
    assert content(tmp_path / "cut") == content(tmp_path / "built")


def test_truncating_an_empty_folder_does_nothing(tmp_path: Path) -> None:
    """A queue without files has no units."""
    assert truncate_queue(MappedFileQueue(tmp_path, 200, DiskStorage()), 0, batch=False) == 0
