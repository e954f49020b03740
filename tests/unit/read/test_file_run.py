"""A run of files while another process creates and deletes files of it."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from tidemark.errors import CorruptStoreError
from tidemark.read.file_run import FileRun, Listing
from tidemark.store.mapped_file_queue import file_name

SIZE = 64


def test_a_file_deleted_while_the_folder_is_listed_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the log would look empty for a moment whenever retention deletes."""
    for start in (0, 64, 128):
        (tmp_path / file_name(start)).write_bytes(b"%d" % start + bytes(SIZE - len(b"%d" % start)))
    run = FileRun(tmp_path)
    listdir = os.listdir

    def listed_before_a_deletion(folder: str) -> list[str]:
        names = listdir(folder)
        (tmp_path / file_name(0)).unlink()
        return names

    monkeypatch.setattr(os, "listdir", listed_before_a_deletion)
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


def test_a_lazy_run_reads_its_folder_at_the_first_use(tmp_path: Path) -> None:
    folder = tmp_path / "queue"
    runs = [FileRun(folder, is_lazy=True) for _ in range(3)]
    folder.mkdir()
    (folder / file_name(0)).write_bytes(b"a" * SIZE)
    expected = Listing((0,), SIZE)
    assert [runs[0].known, runs[1].listing(), runs[2].read(0, 2)] == [expected, expected, b"aa"]


def test_threads_that_list_a_growing_run_together_do_not_disturb_each_other(tmp_path: Path) -> None:
    """One has found the newest file while it was still empty, the other one when it was complete."""
    run = FileRun(tmp_path)
    failures: set[str] = set()
    stop = time.monotonic() + 2

    def list_again() -> None:
        while time.monotonic() < stop:
            try:
                run.listing()
            except Exception as error:
                failures.add(repr(error))

    threads = [threading.Thread(target=list_again) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # seconds; threads then change within a few lines
    try:
        for thread in threads:
            thread.start()
        for start in itertools.takewhile(lambda _: time.monotonic() < stop, itertools.count(0, SIZE)):
            path = tmp_path / file_name(start)
            path.touch()
            os.truncate(path, SIZE)
            if start >= 8 * SIZE:
                (tmp_path / file_name(start - 8 * SIZE)).unlink()
    finally:
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert failures == set()
    assert run.listing() == Listing(tuple(range(start - 7 * SIZE, start + SIZE, SIZE)), SIZE)
