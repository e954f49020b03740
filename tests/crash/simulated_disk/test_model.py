"""The model of a disk itself: it records all operations, and each possible loss occurs in some state."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark.store.storage import DiskStorage, replace_file

from .operations import Create, Rename, Resize, Sync, SyncFolder, Write
from .page_cache import PageCache
from .recorder import Recorder
from .tree import Tree, read_tree

pytestmark = pytest.mark.crash


def states_after(root: Path, act: Callable[[Path, Recorder], None]) -> list[Tree]:
    """Return every state that a power cut after *act* may leave."""
    root.mkdir(exist_ok=True)
    with Recorder(root) as recorder:
        act(root, recorder)
    cache = PageCache(recorder.base, recorder.files)
    for operation in recorder.trace:
        cache.apply(operation)
    assert cache.everything() == read_tree(root), "the model and the disk must agree after a kill"
    units = cache.units()
    return [cache.state(units, choice) for choice in itertools.product(*(range(unit.writes + 1) for unit in units))]


def test_recorded_steps_equal_the_calls_of_the_real_storage(tmp_path: Path) -> None:
    """Each call of DiskStorage is recorded, in order, with all its system calls."""
    with Recorder(tmp_path) as recorder:
        replace_file(DiskStorage(), tmp_path / "small", b"new")
    assert recorder.trace == [
        Create("small.tmp", 0),
        Sync(0),
        SyncFolder("."),
        Resize(0, 3),
        Write(0, 0, b"new"),
        Sync(0),
        Rename("small.tmp", "small"),
        SyncFolder("."),
    ]


def test_stores_to_mapped_words_may_be_written_back_partly(tmp_path: Path) -> None:
    """Any number of the stores to a page may have been written back."""

    def act(root: Path, recorder: Recorder) -> None:
        words = recorder.storage(DiskStorage()).words(root / "words", 4096)
        words.store(1, 5)
        words.flush()
        words.store(1, 6)
        words.store(2, 7)
        words.close()

    found = {tree.files["words"][8:24:8] for tree in states_after(tmp_path, act)}
    assert found == {bytes([5, 0]), bytes([6, 0]), bytes([6, 7])}


def test_unsynced_pages_survive_in_any_combination(tmp_path: Path) -> None:
    """A write over three pages gives eight states; after a sync there is one."""

    def act(root: Path, recorder: Recorder) -> None:
        storage = DiskStorage()
        descriptor = storage.create(root / "log", 3 * 4096)
        storage.pwrite(descriptor, b"x" * (2 * 4096 + 1), 4095)
        if (root / "sync").exists():
            storage.fdatasync(descriptor)
        os.close(descriptor)

    found = {tree.files["log"][4095::4096][:3] for tree in states_after(tmp_path, act)}
    assert len(found) == 8 and {bytes(3), b"xxx"} < found
    (tmp_path / "log").unlink()
    (tmp_path / "sync").touch()
    assert {tree.files["log"][4095::4096][:3] for tree in states_after(tmp_path, act)} == {b"xxx"}


def test_a_name_is_lost_until_its_folder_is_synced(tmp_path: Path) -> None:
    """A sync of the file alone does not keep it; a rename is there or not, never half."""

    def act(root: Path, recorder: Recorder) -> None:
        descriptor = os.open(root / "a", os.O_RDWR | os.O_CREAT, 0o644)
        os.pwrite(descriptor, b"content", 0)
        os.fsync(descriptor)
        os.close(descriptor)
        os.replace(root / "a", root / "b")

    assert {frozenset(tree.files.items()) for tree in states_after(tmp_path, act)} == {
        frozenset(),
        frozenset({("a", b"content")}),
        frozenset({("b", b"content")}),
    }


def move_queue(root: Path) -> None:
    """Create a queue's folder with a file, durably, and move the folder away without a sync."""
    for folder in ("queues", "queues/0", "old"):
        os.mkdir(root / folder)
    descriptor = os.open(root / "queues" / "0" / "file", os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(descriptor, b"units", 0)
    os.fsync(descriptor)
    os.close(descriptor)
    for folder in (".", "queues", "queues/0"):
        descriptor = os.open(root / folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    os.replace(root / "queues" / "0", root / "old" / "0")


def test_folder_between_two_folders_may_be_in_either_in_both_or_in_none(tmp_path: Path) -> None:
    def act(root: Path, recorder: Recorder) -> None:
        move_queue(root)

    assert {frozenset(tree.files) for tree in states_after(tmp_path, act)} == {
        frozenset({"queues/0/file"}),
        frozenset({"old/0/file"}),
        frozenset({"queues/0/file", "old/0/file"}),
        frozenset(),
    }


def test_rename_of_the_storage_is_durable_in_both_folders(tmp_path: Path) -> None:
    def act(root: Path, recorder: Recorder) -> None:
        move_queue(root)
        DiskStorage().rename(root / "old" / "0", root / "queues" / "1")

    assert {frozenset(tree.files) for tree in states_after(tmp_path, act)} == {frozenset({"queues/1/file"})}


def test_a_file_size_may_be_older_than_its_bytes(tmp_path: Path) -> None:
    """The appended data is present, missing, or zero bytes."""

    def act(root: Path, recorder: Recorder) -> None:
        storage = DiskStorage()
        descriptor = storage.create(root / "ledger", 0)
        storage.pwrite(descriptor, b"line", 0)
        os.close(descriptor)

    assert {tree.files["ledger"] for tree in states_after(tmp_path, act)} == {b"", bytes(4), b"line"}
