"""Reading of the index's files while some of them are removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.built_store import BuiltStore
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
