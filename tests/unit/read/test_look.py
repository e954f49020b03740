"""Reads of one request: each file is checked for deletion once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tidemark.read.file_run import FileRun
from tidemark.read.look import look_again, one_look
from tidemark.read.store_reader import StoreReader
from tidemark.read.watermark import Watermark
from tidemark.store.mapped_file_queue import file_name
from tidemark.store.open_file import OpenFile

SIZE = 64


@pytest.fixture
def run(tmp_path: Path) -> FileRun:
    """Return a run of one file, which is open."""
    (tmp_path / file_name(0)).write_bytes(b"a" * SIZE)
    run = FileRun(tmp_path)
    assert run.read(0, 1) == b"a"
    return run


def replace(folder: Path) -> None:
    (folder / "new").write_bytes(b"b" * SIZE)
    os.replace(folder / "new", folder / file_name(0))


def test_a_replaced_file_is_noticed_at_each_read_without_a_look(run: FileRun, tmp_path: Path) -> None:
    replace(tmp_path)
    assert run.read(0, 1) == b"b"


def test_a_look_notices_a_file_that_was_replaced_before_it(run: FileRun, tmp_path: Path) -> None:
    with one_look():
        assert run.read(0, 1) == b"a"
    replace(tmp_path)
    with one_look():
        assert run.read(0, 1) == b"b"


def test_a_look_reads_on_in_a_file_that_is_replaced_meanwhile(run: FileRun, tmp_path: Path) -> None:
    with one_look(), one_look():
        assert run.read(0, 1) == b"a"
        replace(tmp_path)
        assert run.read(0, 1) == b"a"
        look_again()
        assert run.read(0, 1) == b"b"


def test_a_look_ends_with_an_error(run: FileRun, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), one_look():
        run.read(0, 1 // 0)
    replace(tmp_path)
    assert run.read(0, 1) == b"b"


def test_a_look_checks_a_file_once(run: FileRun, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = 0

    def is_deleted(file: OpenFile) -> bool:
        nonlocal checks
        checks += 1
        return False

    monkeypatch.setattr(OpenFile, "is_deleted", property(is_deleted))
    with one_look():
        for _ in range(5):
            run.read(0, 1)
    assert checks == 1


def test_the_first_look_at_a_short_queue_reads_its_units_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The read that finds the queue's end has the units that a pull then asks for."""
    built = BuiltStore(tmp_path / "store", units_a_file=1000)
    built.topic("orders")
    for _ in range(20):
        built.append("orders")
    store = StoreReader(built.root)
    reads = 0
    pread = os.pread

    def counted(descriptor: int, length: int, offset: int) -> bytes:
        nonlocal reads
        reads += 1
        return pread(descriptor, length, offset)

    monkeypatch.setattr(os, "pread", counted)
    with one_look():
        queue = store.queue("orders", 0)
        bounds = queue.bounds(Watermark(0, built.end, 0, built.end), log_min=0)
        units = queue.run.read_visible(0, 20)
    assert (bounds.max_offset, len(units), reads) == (20, 20, 1)
    assert units.tobytes() == queue.run.read(0, 20).tobytes()
