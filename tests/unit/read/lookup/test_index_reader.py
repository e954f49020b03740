"""Reading of the index's files while some of them are removed."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

import pytest

from tests.built_store import BuiltStore
from tests.page_cache import require_refused, would_wait
from tidemark.format.index_file import key_hash
from tidemark.read.cached import NotCachedError, cached_only
from tidemark.read.lookup import index_reader
from tidemark.read.lookup.index_reader import IndexReader, IndexTable


def test_an_index_file_deleted_before_it_is_opened_hides_no_other(
    built: BuiltStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise keys would be missed, or a request would fail, whenever the index expires."""
    for number in range(200):
        built.append("orders", entries={"KEYS": f"k{number}"})
    names = sorted(path.name for path in (built.root / "index").iterdir())
    assert len(names) == 4

    def late(path: Path, slots: int) -> IndexTable:
        if path.name == names[0]:
            path.unlink(missing_ok=True)
        return IndexTable(path, slots)

    monkeypatch.setattr(index_reader, "IndexTable", late)
    reader = IndexReader(built.root / "index", slots=built.slots, entries=built.entries)
    assert [table.path.name for table in reader.tables()] == names[1:]
    assert [table.path.name for table in reader.tables()] == names[1:]


def reader_of(built: BuiltStore) -> IndexReader:
    return IndexReader(built.root / "index", slots=built.slots, entries=built.entries)


def age(folder: Path) -> None:
    """Make the last change of *folder* ten seconds old."""
    then = time.time() - 10
    os.utime(folder, (then, then))


def test_the_files_are_listed_again_after_the_folder_has_changed(built: BuiltStore) -> None:
    """Within the same tick of the clock, a second change leaves the folder's time as it is."""
    built.append("orders", entries={"KEYS": "k"})
    folder, reader = built.root / "index", reader_of(built)
    (first,) = reader.tables()
    change = os.stat(folder).st_mtime_ns
    for number in range(64):
        built.append("orders", entries={"KEYS": f"k{number}"})
    os.utime(folder, ns=(change, change))
    assert len(reader.tables()) == 2, "the first listing was as young as its folder's last change"
    age(folder)
    assert reader.tables()[0].path == first.path
    (folder / first.path.name).unlink()
    assert [table.path.name for table in reader.tables()] == sorted(path.name for path in folder.iterdir())


def test_an_event_loop_lists_no_files_but_uses_a_settled_list(built: BuiltStore) -> None:
    built.append("orders", entries={"KEYS": "k"})
    reader = reader_of(built)
    with cached_only(), pytest.raises(NotCachedError):
        reader.tables()
    age(built.root / "index")
    listed = reader.tables()
    with cached_only():
        assert reader.tables() is listed


def test_a_long_chain_is_not_walked_by_an_event_loop(built: BuiltStore) -> None:
    for _ in range(33):
        built.append("orders", entries={"KEYS": "same"})
    (table,) = reader_of(built).tables()
    same, other = key_hash("orders", "same"), key_hash("orders", "other")
    assert same % built.slots != other % built.slots
    table.require_cached(same)
    with cached_only():
        table.require_cached(other)
        with pytest.raises(NotCachedError):
            table.require_cached(same)


def test_a_chain_that_is_not_in_memory_is_not_walked_by_an_event_loop(built: BuiltStore) -> None:
    built.append("orders", entries={"KEYS": "k"})
    (path,) = (built.root / "index").iterdir()
    table = IndexTable(path, built.slots)
    walk = partial(table.require_cached, key_hash("orders", "k"))
    assert not would_wait(walk)
    require_refused(lambda: would_wait(walk), path)
