"""A run of files while others delete from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from tidemark.read.file_run import FileRun, Listing
from tidemark.store.mapped_file_queue import file_name

SIZE = 64


class Vanishing:
    """A listing of the folder in which file 0 goes after it was listed and before it was looked at."""

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


def test_a_file_that_goes_while_the_folder_is_listed_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the log would look empty for a moment, whenever retention deletes."""
    for start in (0, 64, 128):
        (tmp_path / file_name(start)).write_bytes(b"%d" % start + bytes(SIZE - len(b"%d" % start)))
    run = FileRun(tmp_path)
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: Vanishing(scandir(folder)))
    assert run.refresh() == Listing((64, 128), SIZE)
    assert run.read(128, 3) == b"128"


def _ints(*values: int) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def test_runs_of_several_files_are_read_together(tmp_path: Path) -> None:
    """Each to its place; one that a missing or a shorter file does not hold makes the whole fail."""
    content = bytes(range(200))
    for start in (0, 100):
        (tmp_path / f"{start:020d}").write_bytes(content[start : start + 100])
    run = FileRun(tmp_path)
    buffer = np.zeros(40, np.uint8)
    assert run.read_runs_into(_ints(5, 50, 190), _ints(10, 1, 10), buffer, _ints(0, 10, 20))
    assert bytes(buffer) == content[5:15] + content[50:51] + bytes(9) + content[190:200] + bytes(10)
    assert not run.read_runs_into(_ints(5, 250), _ints(10, 10), buffer, _ints(0, 10))
    with (tmp_path / f"{100:020d}").open("r+b") as file:
        file.truncate(50)
    assert not run.read_runs_into(_ints(5, 145), _ints(10, 10), buffer, _ints(0, 10))
    with pytest.raises(ValueError, match="longer than its place"):
        run.read_runs_into(_ints(5), _ints(10), buffer, _ints(31))
